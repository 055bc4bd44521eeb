//! The variables of an instance's server.

use super::InstanceTab;
use crate::{
    form::Form,
    response::{Frame, PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{InstanceId, backend_instances::UpdateBackendInstance};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/environment", web::get().to(show))
        .route("/instances/{id}/environment", web::post().to(change));
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
            "A container with these variables replaces the running one when it is healthy.",
        ),
        Err(fault) => show_with(&visitor, instance_id, Some(form.refused(fault))).await,
    }
}
