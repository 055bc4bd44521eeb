//! The organizations that use the most of a quota.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Limit,
    operators::{GetLargestUsers, QuotaUser},
    quotas::{Quota, QuotaUse, Unit},
};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/operations/usage", web::get().to(show));
}

/// The quota that a person chose.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UsageQuery {
    quota: String,
}

#[derive(Template)]
#[template(path = "operations_usage.html")]
struct UsagePage {
    frame: Frame,
    form: Form,
    /// The largest use first.
    users: Vec<QuotaUser>,
    unit: Unit,
    promised: Vec<QuotaUse>,
}

async fn show(visitor: Visitor, query: web::Query<UsageQuery>) -> PageResult {
    let form = Form::search([("quota", &query.quota)]);
    let params = |form: &Form| {
        let quota = form.get::<Option<Quota>>("quota")?.unwrap_or(Quota::ArtifactBytes);
        Ok(GetLargestUsers { quota, limit: Limit::default() })
    };
    let (found, form) = visitor.search(form, params).await?;
    let (users, unit, promised) = found.map_or((Vec::new(), Unit::Count, Vec::new()), |it| {
        (it.organizations, it.unit, it.promised)
    });
    let frame = tab(&visitor, "/usage").await?;
    form_page(&form.clone(), &UsagePage { frame, form, users, unit, promised })
}

impl UsagePage {
    /// The quotas: on the wire, and in words.
    fn quotas(&self) -> Vec<(&'static str, String)> {
        let words = |quota: &Quota| crate::pages::name(&self.frame.messages, quota);
        Quota::ALL.iter().map(|quota| (quota.name(), crate::text::sentence(words(quota)))).collect()
    }

    fn is_chosen(&self, quota: &str) -> bool {
        let chosen = self.form.value("quota");
        quota == if chosen.is_empty() { Quota::ArtifactBytes.name() } else { chosen }
    }
}
