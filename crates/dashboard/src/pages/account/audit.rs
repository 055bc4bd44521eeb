//! The audit log of the person: what was changed with their sessions and deploy tokens.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Limit, authentication::GetOwnAuditLog, operators::AuditEvent};
use serde::Deserialize;

const HERE: &str = "/account/audit";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(list));
}

/// The changes that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OwnAuditQuery {
    function: String,
    resource: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "account_audit.html")]
struct OwnAuditPage {
    frame: Frame,
    list: ListPart<AuditEvent>,
}

async fn list(visitor: Visitor, query: web::Query<OwnAuditQuery>) -> PageResult {
    let OwnAuditQuery { function, resource, cursor } = &*query;
    let search = Form::search([("function", function), ("resource", resource), (CURSOR, cursor)]);
    let list = ListPart::read(&visitor, HERE, search, |form| {
        Ok(GetOwnAuditLog {
            function: form.get("function")?,
            resource: form.get("resource")?,
            since: None,
            limit: Limit::default(),
            cursor: form.get(CURSOR)?,
        })
    })
    .await?;
    let frame = tab(&visitor, "/audit").await?;
    form_page(&list.form.clone(), &OwnAuditPage { frame, list })
}
