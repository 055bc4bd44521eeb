//! The audit log of the person: what was changed with their sessions and deploy tokens.

use super::tab;
use crate::{
    answer::{Answer, Frame, form_page},
    form::{Form, search},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Page, authentication::GetOwnAuditLog, operators::AuditEvent};
use serde::Deserialize;

const HERE: &str = "/account/audit";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(list));
}

/// What a person looks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    function: String,
    resource: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "account_audit.html")]
struct List {
    frame: Frame,
    /// `None` if the search was refused.
    events: Option<Page<AuditEvent>>,
    form: Form,
}

async fn list(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let Wanted { function, resource, cursor } = wanted.into_inner();
    let params = search([("function", &function), ("resource", &resource), ("cursor", &cursor)]);
    let form = Form::filled([("function", function), ("resource", resource)]);
    let (events, form) = visitor.search::<GetOwnAuditLog>(params, form).await?;
    let frame = tab(&visitor, "/audit").await?;
    form_page(&form.clone(), &List { frame, events, form })
}
