//! The audit log of the person: what was changed with their sessions and deploy tokens.

use super::tab;
use crate::{
    answer::{Answer, Frame, form_page},
    form::Form,
    list::{CURSOR, List},
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
struct Changes {
    frame: Frame,
    list: List<AuditEvent>,
}

async fn list(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let Wanted { function, resource, cursor } = &*wanted;
    let search = Form::search([("function", function), ("resource", resource), (CURSOR, cursor)]);
    let list = List::read(&visitor, HERE, search, |form| {
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
    form_page(&list.form.clone(), &Changes { frame, list })
}
