//! The audit log of the person: what was changed with their sessions and deploy tokens.

use super::TABS;
use crate::{
    answer::{Answer, Frame, page},
    form::search,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Page, authentication::GetOwnAuditLog, operators::AuditEvent};
use serde::Deserialize;
use serde_json::Value;

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
    events: Page<AuditEvent>,
    wanted: Wanted,
}

impl List {
    fn tabs(&self) -> &'static [(&'static str, &'static str)] {
        TABS
    }

    fn is_here(&self, address: &str) -> bool {
        address == HERE
    }
}

async fn list(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let wanted = wanted.into_inner();
    let Wanted { function, resource, cursor } = &wanted;
    let params = search([("function", function), ("resource", resource), ("cursor", cursor)]);
    let events = visitor.send::<GetOwnAuditLog>(&Value::Object(params), None).await?;
    let frame = Frame::of(&visitor, "Account").await?;
    page(&List { frame, events, wanted })
}
