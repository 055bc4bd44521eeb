//! The variables of an instance's server.

use super::InstanceTab;
use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    InstanceId,
    backend_instances::UpdateBackendInstance,
    instance_helpers::{GetInstanceSecrets, InstanceSecrets},
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/environment", web::get().to(show))
        .route("/instances/{id}/environment", web::post().to(change))
        .route("/instances/{id}/environment/secrets", web::post().to(show_secrets));
}

#[derive(Template)]
#[template(path = "instance_secrets.html")]
struct SecretsPage {
    frame: Frame,
    tab: InstanceTab,
    secrets: InstanceSecrets,
}

/// Shows the secrets that the service made for the instance. The audit log says who saw them.
async fn show_secrets(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let (frame, tab) = InstanceTab::open(&visitor, instance_id, "/environment").await?;
    let (app_id, kind) = (tab.instance.app_id, Some(tab.instance.kind));
    match visitor.send(&form, |_| Ok(GetInstanceSecrets { app_id, kind })).await {
        Ok(secrets) => page(&SecretsPage { frame, tab, secrets }),
        Err(fault) => show_with(&visitor, instance_id, Some(form.refused(fault))).await,
    }
}

#[derive(Template)]
#[template(path = "instance_environment.html")]
struct EnvironmentPage {
    frame: Frame,
    tab: InstanceTab,
    form: Form,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::super::id(path, "instance")?, None).await
}

/// Shows the variables: as they were entered, or as they are.
async fn show_with(visitor: &Visitor, instance_id: InstanceId, form: Option<Form>) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "/environment").await?;
    let form = form.unwrap_or_else(|| {
        let lines = tab.instance.env.iter().map(|(name, value)| format!("{name}={value}\n"));
        Form::filled([("env", lines.collect())])
    });
    form_page(&form.clone(), &EnvironmentPage { frame, tab, form })
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| {
        let env = Some(form.get("env")?);
        Ok(UpdateBackendInstance { instance_id, name: None, env, resources: None })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(
            &format!("{}/environment", super::at(instance_id)),
            visitor.say().variables_are_saved(),
        ),
        Err(fault) => show_with(&visitor, instance_id, Some(form.refused(fault))).await,
    }
}
