//! Instances: the backends and market servers of apps. Each has tabs, with a module for each group.

mod backups;
mod environment;
mod inside;
mod logs;
mod overview;

use crate::{
    answer::{Answer, Frame, Refused, done, form_page},
    form::Form,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, InstanceId, Limit, Page, ProjectId,
    apps::{App, ListApps},
    backend_instances::{
        CreateBackendInstance, GetBackendInstance, GetBackendInstances, UndeleteBackendInstance,
    },
    instance_helpers::GetInstanceDetails,
    instances::{Instance, InstanceKind, Role},
    market_instances::DeployMarketServer,
    projects::{GetProject, Project},
    templates::{GetTemplates, Template as Blueprint},
};
use serde_json::{Value, json};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/projects/{id}/instances", web::get().to(list))
        .route("/projects/{id}/instances", web::post().to(create))
        .route("/projects/{id}/instances/undelete", web::post().to(undelete));
    overview::configure(app);
    logs::configure(app);
    environment::configure(app);
    backups::configure(app);
    inside::configure(app);
}

/// The tabs of an instance: the last part of the address, and the label.
const TABS: &[(&str, &str)] = &[
    ("", "Overview"),
    ("/deployments", "Deployments"),
    ("/logs", "Logs"),
    ("/environment", "Environment"),
    ("/backups", "Backups"),
    ("/database", "Database"),
    ("/functions", "Cloud functions"),
];

/// The instance that all tabs are about.
pub struct Tab {
    pub instance: Instance,
}

impl Tab {
    /// Reads the instance. `here` is the last part of the address of the tab.
    pub async fn open(
        visitor: &Visitor,
        instance_id: InstanceId,
        here: &str,
    ) -> Result<(Frame, Tab), Refused> {
        let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
        let frame = Frame::of(visitor, instance.name.as_str()).await?;
        let frame = frame.below("Projects", "/");
        let instances = format!("/projects/{}/instances", instance.project_id);
        let frame = frame.below("Instances", instances);
        let tab = Tab { instance };
        // Market servers have no cloud functions.
        let has = |(part, _): &&_| *part != "/functions" || tab.is_backend();
        let tabs = TABS.iter().filter(has);
        Ok((frame.with_tabs("Instance", (&at(instance_id), here), tabs), tab))
    }

    pub fn is_backend(&self) -> bool {
        self.instance.kind == InstanceKind::Backend
    }
}

/// What a service of an instance is called.
pub fn service(role: &Role) -> &'static str {
    match role {
        Role::DocumentDb => "Document database",
        Role::SqlDb => "SQL database",
        Role::Server => "Server",
        Role::Dashboard => "Dashboard",
        Role::Storefront => "Storefront",
    }
}

/// The address of an instance.
fn at(instance: InstanceId) -> String {
    format!("/instances/{instance}")
}

/// The instance of an app, if there is one.
pub async fn of_app(
    visitor: &Visitor,
    app_id: AppId,
    kind: InstanceKind,
) -> Result<Option<Instance>, Refused> {
    match visitor.read(&GetInstanceDetails { app_id, kind: Some(kind) }).await {
        Ok(instance) => Ok(Some(instance)),
        Err(Refused(Fault::NotFound(_))) => Ok(None),
        Err(refused) => Err(refused),
    }
}

#[derive(Template)]
#[template(path = "instances.html")]
struct List {
    frame: Frame,
    project: Project,
    instances: Page<Instance>,
    deleted: Vec<Instance>,
    apps: Vec<App>,
    templates: Vec<Blueprint>,
    form: Form,
}

async fn list(visitor: Visitor, path: web::Path<String>) -> Answer {
    list_with(&visitor, super::id(path, "project")?, Form::default()).await
}

async fn list_with(visitor: &Visitor, project_id: ProjectId, form: Form) -> Answer {
    let project = visitor.read(&GetProject { project_id }).await?;
    let of =
        |deleted| GetBackendInstances { project_id, deleted, limit: Limit::MOST, cursor: None };
    let instances = visitor.read(&of(false)).await?;
    let deleted = visitor.read(&of(true)).await?.items;
    let apps = ListApps { project_id, limit: Limit::MOST, cursor: None };
    let apps = visitor.read(&apps).await?.items;
    let all = GetTemplates { query: None, kind: None, limit: Limit::MOST, cursor: None };
    let templates = visitor.read(&all).await?.items;
    let frame = Frame::of(visitor, "Instances").await?.below("Projects", "/");
    let frame = frame.below(&project.name, format!("/projects/{project_id}"));
    let list = List { frame, project, instances, deleted, apps, templates, form };
    form_page(&list.form.clone(), &list)
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    match created(&visitor, project_id, &form).await {
        Ok(made) => done(&at(made.id), "The instance is being made."),
        Err(fault) => list_with(&visitor, project_id, form.refused(fault)).await,
    }
}

async fn created(visitor: &Visitor, project_id: ProjectId, form: &Form) -> Result<Instance, Fault> {
    let mut params = form.params(&["name", "appId", "templateId", "fromBackupId"]);
    params.insert("projectId".into(), json!(project_id));
    params.insert("env".into(), form.pairs("env")?.into());
    let params = Value::Object(params);
    match form.value("kind") {
        "market" => visitor.send::<DeployMarketServer>(&params, form.key()).await,
        _ => visitor.send::<CreateBackendInstance>(&params, form.key()).await,
    }
}

async fn undelete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    let params = Value::Object(form.params(&["instanceId"]));
    match visitor.send::<UndeleteBackendInstance>(&params, form.key()).await {
        Ok(back) => done(&at(back.id), "The instance comes back."),
        Err(fault) => list_with(&visitor, project_id, form.refused(fault)).await,
    }
}
