//! Instances: the backends and market servers of apps. Each has tabs, with a module for each group.

mod backups;
mod environment;
mod inside;
mod logs;
mod overview;

use crate::{
    form::Form,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{Frame, Note, PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, InstanceId, Limit, Page, ProjectId,
    apps::{App, GetApp, ListApps},
    backend_instances::{
        CreateBackendInstance, GetBackendInstance, GetBackendInstances, InstanceKinds,
        UndeleteBackendInstance,
    },
    instance_helpers::GetInstanceDetails,
    instances::{Instance, InstanceKind, Role},
    market_instances::DeployMarketServer,
    projects::{GetProject, Project},
    templates::{GetTemplates, Template as Blueprint},
};
use serde::Deserialize;

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
pub struct InstanceTab {
    pub instance: Instance,
}

impl InstanceTab {
    /// Reads the instance. `here` is the last part of the address of the tab.
    pub async fn open(
        visitor: &Visitor,
        instance_id: InstanceId,
        here: &str,
    ) -> Result<(Frame, InstanceTab), Refused> {
        let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
        let frame = Frame::of(visitor, instance.name.as_str()).await?;
        let frame = frame.below("Projects", "/");
        let instances = format!("/projects/{}/instances", instance.project_id);
        let frame = frame.below("Instances", instances);
        let tab = InstanceTab { instance };
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

/// The part of a list, and what the form for a new instance begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InstancesQuery {
    cursor: String,
    app: String,
    kind: String,
}

#[derive(Template)]
#[template(path = "instances.html")]
struct InstancesPage {
    frame: Frame,
    project: Project,
    list: ListPart<Instance>,
    deleted: Vec<Instance>,
    /// The newest apps of the project, and those that the page names.
    apps: Vec<App>,
    /// Whether the project has more apps.
    is_cut: bool,
    templates: Vec<Blueprint>,
    form: Form,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<InstancesQuery>,
) -> PageResult {
    let form = Form::filled([("appId", query.app.clone()), ("kind", query.kind.clone())]);
    let part = ListQuery { cursor: query.cursor.clone() };
    list_with(&visitor, super::id(path, "project")?, &part, form).await
}

/// Shows the list with a form that was refused.
async fn again(visitor: &Visitor, project_id: ProjectId, form: Form) -> PageResult {
    list_with(visitor, project_id, &ListQuery::default(), form).await
}

async fn list_with(
    visitor: &Visitor,
    project_id: ProjectId,
    query: &ListQuery,
    form: Form,
) -> PageResult {
    let project = visitor.read(&GetProject { project_id }).await?;
    let at = format!("/projects/{project_id}/instances");
    let all = |deleted, limit, cursor| {
        let kind = InstanceKinds::All;
        GetBackendInstances { project_id, kind, state: None, deleted, limit, cursor }
    };
    let list: ListPart<Instance> = ListPart::read(visitor, &at, query.form(), |form| {
        Ok(all(false, Limit::default(), form.get(CURSOR)?))
    })
    .await?;
    let deleted = all(true, Limit::MOST, None);
    let deleted = visitor.read(&deleted).await?.items;
    let newest = ListApps { project_id, query: None, limit: Limit::MOST, cursor: None };
    let Page { items: mut apps, next_cursor, .. } = visitor.read(&newest).await?;
    let named = list.items.iter().map(|instance| instance.app_id);
    let named: Vec<AppId> = named.chain(form.value("appId").parse().ok()).collect();
    for app_id in named {
        if !apps.iter().any(|app| app.id == app_id) {
            apps.push(visitor.read(&GetApp { app_id }).await?);
        }
    }
    let templates = GetTemplates { query: None, kind: None, limit: Limit::MOST, cursor: None };
    let templates = visitor.read(&templates).await?.items;
    let frame = Frame::of(visitor, "Instances").await?.below("Projects", "/");
    let frame = frame.below(&project.name, format!("/projects/{project_id}"));
    let is_cut = next_cursor.is_some();
    let page = InstancesPage { frame, project, list, deleted, apps, is_cut, templates, form };
    form_page(&page.form.clone(), &page)
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let created = match form.value("kind") {
        "market" => visitor.send(&form, |form| market(form, project_id)).await,
        _ => visitor.send(&form, |form| backend(form, project_id)).await,
    };
    match created {
        Ok(made) => done(&at(made.id), Note::plain("The instance is being made.")),
        Err(fault) => again(&visitor, project_id, form.refused(fault)).await,
    }
}

fn market(form: &Form, project_id: ProjectId) -> Result<DeployMarketServer, Fault> {
    Ok(DeployMarketServer {
        project_id,
        app_id: form.get("appId")?,
        name: form.get("name")?,
        template_id: form.get("templateId")?,
        env: form.get("env")?,
        resources: None,
        from_backup_id: form.get("fromBackupId")?,
    })
}

fn backend(form: &Form, project_id: ProjectId) -> Result<CreateBackendInstance, Fault> {
    Ok(CreateBackendInstance {
        project_id,
        name: form.get("name")?,
        app_id: form.get("appId")?,
        template_id: form.get("templateId")?,
        env: form.get("env")?,
        resources: None,
        from_backup_id: form.get("fromBackupId")?,
    })
}

async fn undelete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let params = |form: &Form| {
        Ok(UndeleteBackendInstance { instance_id: form.get("instanceId")?, app_id: None })
    };
    match visitor.send(&form, params).await {
        Ok(back) => done(&at(back.id), Note::plain("The instance comes back.")),
        Err(fault) => again(&visitor, project_id, form.refused(fault)).await,
    }
}
