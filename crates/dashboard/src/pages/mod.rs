//! The pages, in groups. Each page is a `GET`; each of its forms is a `POST` to the page itself or to
//! an action below it.

mod account;
mod app_settings;
mod apps;
mod artifacts;
mod builds;
mod commerce;
mod credentials;
mod deployments;
mod docs;
pub mod errors;
mod home;
mod images;
mod instances;
mod operations;
mod organizations;
mod places;
mod projects;
mod publishing;
mod reference;
mod releases;
mod search;
pub mod sign_in;
mod source;
mod start;
mod templates;

use crate::{
    form::Form,
    list::CURSOR,
    response::{PageResult, Refused},
    visitor::Visitor,
};
use actix_web::{
    HttpResponse,
    http::{Method, header},
    web,
};
use contract::{
    Fault,
    apps::Platform,
    artifacts::{ProvenancePath, Trust},
    releases::Target,
    repositories::RepositoryMode,
};
use messages::Messages;
use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, str::FromStr};

pub fn configure(app: &mut web::ServiceConfig) {
    app.app_data(web::QueryConfig::default().error_handler(|e, _| {
        Refused(Fault::Malformed(format!("this address is not whole: {e}"))).into()
    }));
    home::configure(app);
    start::configure(app);
    sign_in::configure(app);
    account::configure(app);
    organizations::configure(app);
    operations::configure(app);
    projects::configure(app);
    apps::configure(app);
    app_settings::configure(app);
    source::configure(app);
    builds::configure(app);
    artifacts::configure(app);
    releases::configure(app);
    publishing::configure(app);
    credentials::configure(app);
    instances::configure(app);
    deployments::configure(app);
    commerce::configure(app);
    templates::configure(app);
    images::configure(app);
    docs::configure(app);
    reference::configure(app);
    search::configure(app);
}

/// Nothing has this address, or only a form. Who opens the address of a form, for example by loading
/// a refused one again, is led to its page, which is above it.
pub async fn nothing_here(visitor: Visitor) -> PageResult {
    let req = visitor.request();
    let is_looked_at = matches!(*req.method(), Method::GET | Method::HEAD);
    match req.path().rsplit_once('/') {
        Some((above, _)) if is_looked_at && req.match_pattern().is_some() => {
            let to = if above.is_empty() { "/" } else { above };
            Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, to)).finish())
        }
        _ => Err(Refused(Fault::NotFound("page"))),
    }
}

/// The part of a list that an address names.
#[derive(Debug, Default, Deserialize)]
pub struct ListQuery {
    #[serde(default)]
    cursor: String,
}

impl ListQuery {
    /// The form of a list without filters.
    fn form(&self) -> Form {
        Form::search([(CURSOR, &self.cursor)])
    }
}

/// The id in an address. What is no id names nothing.
pub fn id<T: FromStr>(path: web::Path<String>, noun: &'static str) -> Result<T, Refused> {
    path.into_inner().parse().map_err(|_| Refused(Fault::NotFound(noun)))
}

/// The name of a state or a kind on the wire, such as `partiallyPublished`.
pub fn wire(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

/// What a way by which builds and artifacts come is called.
pub fn path(say: &Messages, path: &ProvenancePath) -> String {
    match path {
        ProvenancePath::DashboardTrigger => say.dashboard(),
        ProvenancePath::CliTrigger => say.command_line(),
        ProvenancePath::LocalPublish => say.local_publish(),
        ProvenancePath::ExternalCi => say.external_ci(),
        ProvenancePath::ManualUpload => say.manual_upload(),
    }
}

/// How well the origin of a file is proven.
pub fn origin(say: &Messages, trust: impl Borrow<Trust>) -> String {
    match trust.borrow() {
        Trust::Unverified => say.origin_not_proven(),
        Trust::Token => say.with_deploy_token(),
        Trust::Oidc => say.origin_by_ci_run(),
        Trust::Attested => say.origin_attested(),
    }
}

/// The name by which people know a platform.
pub fn platform(platform: impl Borrow<Platform>) -> &'static str {
    match platform.borrow() {
        Platform::Ios => "iOS",
        Platform::Android => "Android",
    }
}

/// The name by which people know a target.
pub fn target(say: &Messages, target: impl Borrow<Target>) -> String {
    match target.borrow() {
        Target::AppStore => "App Store".to_owned(),
        Target::GooglePlay => "Google Play".to_owned(),
        Target::Testflight => "TestFlight".to_owned(),
        Target::FirebaseAppDistribution => "Firebase".to_owned(),
        Target::Ota => say.install_link(),
    }
}

/// What the mode of a repository is called.
pub fn mode(say: &Messages, mode: &RepositoryMode) -> String {
    match mode {
        RepositoryMode::Managed => say.managed(),
        RepositoryMode::ArtifactOnly => say.artifact_only(),
        RepositoryMode::Unclassified => say.not_classified_yet(),
    }
}

/// The name of a state or a kind in words, such as `partially published`.
pub fn name(say: &Messages, value: &impl Serialize) -> String {
    let name = wire(value);
    let mut words = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    say.name_of_value(name, words.replace('-', " "))
}
