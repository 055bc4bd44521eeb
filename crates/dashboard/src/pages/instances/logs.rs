//! What the containers of an instance print.

use super::InstanceTab;
use crate::{
    form::Form,
    frame::{Frame, View},
    live::{self, Next},
    response::{PageResult, Refused, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, InstanceId,
    backend_instances::GetBackendInstance,
    instance_helpers::{GetInstanceLogs, InstanceLogs},
    instances::Instance,
};
use serde::Deserialize;
use std::time::Duration;

/// The pause between two readings of the output.
const INTERVAL: Duration = Duration::from_secs(3);
/// The lines that a page shows.
const LINES: u32 = 300;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/logs", web::get().to(show))
        .route("/instances/{id}/logs/live", web::get().to(follow));
}

/// The output that a person chose. Empty: all of it.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct LogsQuery {
    service: String,
    stream: String,
}

impl LogsQuery {
    async fn read(&self, visitor: &Visitor, of: &Instance) -> Result<LogLines, Refused> {
        let form = Form::search([("service", &self.service), ("stream", &self.stream)]);
        let params = GetInstanceLogs {
            app_id: of.app_id,
            kind: Some(of.kind),
            service: form.get("service")?,
            tail: Some(LINES),
            since: None,
            stream: form.get("stream")?,
        };
        let logs = match visitor.call(&params, None).await {
            Ok(logs) => Ok(logs),
            Err(fault @ (Fault::NotNow(_) | Fault::Unavailable(_))) => Err(fault.to_string()),
            Err(fault) => return Err(Refused(fault)),
        };
        Ok(LogLines { frame: visitor.view(), logs })
    }
}

/// The end of the output, or why there is none.
#[derive(Template)]
#[template(path = "instance_lines.html")]
struct LogLines {
    frame: View,
    logs: Result<InstanceLogs, String>,
}

#[derive(Template)]
#[template(path = "instance_logs.html")]
struct LogsPage {
    frame: Frame,
    tab: InstanceTab,
    lines: LogLines,
    query: LogsQuery,
    /// The address of the live output.
    live: String,
}

impl LogsPage {
    /// The services of the instance: the name on the wire, and what they are called.
    fn services(&self) -> Vec<(String, String)> {
        let services = self.tab.instance.services.iter().map(|service| service.role);
        let named = |role| (crate::pages::wire(&role), super::service(&self.frame.messages, &role));
        services.map(named).collect()
    }
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<LogsQuery>,
) -> PageResult {
    let (frame, tab) =
        InstanceTab::open(&visitor, super::super::id(path, "instance")?, "/logs").await?;
    let query = query.into_inner();
    let lines = query.read(&visitor, &tab.instance).await?;
    let fields = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("service", &query.service), ("stream", &query.stream)])
        .finish();
    let live = format!("/instances/{}/logs/live?{fields}", tab.instance.id);
    page(&LogsPage { frame, tab, lines, query, live })
}

async fn follow(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<LogsQuery>,
) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let query = query.into_inner();
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let lines = query.read(visitor, &instance).await?;
        live::replaced(&lines, last, Next::Later)
    })
    .await
}
