//! A first app: registers a person, makes a project with an app, and reads all apps of the project.
//!
//! ```sh
//! make run                                  # prints the address, in another terminal
//! cargo run -p svc-client --example first_app -- http://127.0.0.1:8080/backend "$(svc admin application-id)"
//! ```

#![allow(clippy::print_stdout, reason = "an example for a terminal")]

use std::{env, error::Error};
use svc_client::{
    Client, Kind,
    contract::{
        apps::{CreateApp, ListApps},
        authentication::RegisterUser,
        projects::CreateProject,
    },
};

/// Returns the names of the apps.
pub async fn run(base_url: &str, application_id: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut svc = Client::builder(base_url).application_id(application_id).build()?;
    let ada = RegisterUser {
        email: format!("ada-{}@example.com", std::process::id()).parse()?,
        password: "correct horse battery".parse()?,
        name: Some("Ada".parse()?),
        invitation: None,
    };
    // From now on, calls are made in Ada's session.
    svc.register_user(&ada).await?;

    let shop = CreateProject { name: "Shop".parse()?, organization_id: None, description: None };
    let project = svc.call(&shop).await?;
    let app = |name: &str| -> Result<CreateApp, Box<dyn Error>> {
        let (project_id, name) = (project.id, name.parse()?);
        Ok(CreateApp { project_id, name, platforms: None, bundle_id: None, package_name: None })
    };
    for name in ["Tea", "Coffee"] {
        match svc.call(&app(name)?).await {
            Ok(app) => println!("made {} ({})", app.name, app.id),
            // Nobody knows whether it was made. With the same key, it is made once.
            Err(error) if error.kind == Kind::Unclear => {
                let key = error.idempotency_key.unwrap_or_default();
                svc.call_once(&key, &app(name)?).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let all = |cursor| ListApps {
        project_id: project.id,
        query: None,
        limit: Default::default(),
        cursor,
    };
    let apps = svc.list_all(all).await?;
    Ok(apps.into_iter().map(|app| app.name.to_string()).collect())
}

#[allow(dead_code, reason = "a test runs the example against a server of its own")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut given = env::args().skip(1);
    let (Some(base_url), Some(application_id)) = (given.next(), given.next()) else {
        return Err("name the address of the service and its application id".into());
    };
    println!("{:?}", run(&base_url, &application_id).await?);
    Ok(())
}
