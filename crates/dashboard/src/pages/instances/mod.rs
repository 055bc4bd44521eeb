//! Instances: the backends and market servers of apps. Each has tabs, with a module for each group.

mod backups;
mod domains;
mod environment;
mod inside;
mod logs;
mod overview;

use crate::{
    form::Form,
    frame::{Frame, Tab},
    list::{CURSOR, ListPart},
    response::{Note, PageResult, Refused, done, form_page},
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
    engines::EngineLabels,
    instance_helpers::GetInstanceDetails,
    instances::{Instance, InstanceKind, InstanceState, Role},
    market_instances::DeployMarketServer,
    projects::Project,
    templates::{GetTemplates, Template as Blueprint},
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/projects/{id}/instances", web::get().to(list))
        .route("/projects/{id}/instances", web::post().to(create))
        .route("/projects/{id}/instances/undelete", web::post().to(undelete));
    overview::configure(app);
    logs::configure(app);
    environment::configure(app);
    backups::configure(app);
    domains::configure(app);
    inside::configure(app);
}

/// The tabs of an instance: the last part of the address, and the label.
const TABS: &[Tab] = &[
    ("", Messages::overview),
    ("/deployments", Messages::deployments),
    ("/logs", Messages::logs),
    ("/environment", Messages::environment),
    ("/backups", Messages::backups),
    ("/domains", Messages::domains),
    ("/database", Messages::database),
    ("/functions", Messages::cloud_functions),
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
        let (frame, project) =
            Frame::in_project(visitor, |_| instance.name.to_string(), instance.project_id).await?;
        let frame =
            frame.below_page(Messages::instances, format!("/projects/{}/instances", project.id));
        let tab = InstanceTab { instance };
        // Market servers have no cloud functions.
        let has = |(part, _): &&_| *part != "/functions" || tab.is_backend();
        let tabs = TABS.iter().filter(has);
        Ok((frame.with_tabs(Messages::instance, (&at(instance_id), here), tabs), tab))
    }

    pub fn is_backend(&self) -> bool {
        self.instance.kind == InstanceKind::Backend
    }
}

/// What a service of an instance is called.
pub fn service(say: &Messages, role: &Role) -> String {
    match role {
        Role::DocumentDb => say.document_database(),
        Role::SqlDb => say.sql_database(),
        Role::Server => say.server(),
        Role::Dashboard => say.dashboard(),
        Role::Storefront => say.storefront(),
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
    backup: String,
    /// The kind of the instances that are listed.
    only: String,
    state: String,
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

impl InstancesPage {
    /// The states by which a person may filter: the name on the wire, and in words.
    fn states(&self) -> [(String, String); 8] {
        use InstanceState as S;
        [
            S::Running,
            S::Degraded,
            S::Failed,
            S::Stopped,
            S::Provisioning,
            S::Starting,
            S::Stopping,
            S::Restarting,
        ]
        .map(|state| (super::wire(&state), super::name(&self.frame.messages, &state)))
    }
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<InstancesQuery>,
) -> PageResult {
    let InstancesQuery { app, kind, backup, .. } = &*query;
    let form = Form::search([("appId", app), ("kind", kind), ("fromBackupId", backup)]);
    let search = [("only", &query.only), ("state", &query.state), (CURSOR, &query.cursor)];
    list_with(&visitor, super::id(path, "project")?, Form::search(search), form).await
}

/// Shows the list with a form that was refused.
async fn again(visitor: &Visitor, project_id: ProjectId, form: Form) -> PageResult {
    list_with(visitor, project_id, Form::default(), form).await
}

async fn list_with(
    visitor: &Visitor,
    project_id: ProjectId,
    search: Form,
    form: Form,
) -> PageResult {
    let at = format!("/projects/{project_id}/instances");
    let all = GetBackendInstances {
        project_id,
        kind: InstanceKinds::All,
        state: None,
        deleted: true,
        limit: Limit::MOST,
        cursor: None,
    };
    let list: ListPart<Instance> = ListPart::read(visitor, &at, search, |form| {
        let kind: Option<InstanceKinds> = form.get("only")?;
        let (state, cursor) = (form.get("state")?, form.get(CURSOR)?);
        let (kind, limit) = (kind.unwrap_or(all.kind), Limit::default());
        Ok(GetBackendInstances { kind, state, deleted: false, limit, cursor, ..all })
    })
    .await?;
    let deleted = visitor.read(&all).await?.items;
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
    let (frame, project) = Frame::in_project(visitor, Messages::instances, project_id).await?;
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
        Ok(made) => done(&at(made.id), Note::plain(visitor.say().instance_is_being_made())),
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
        engine_labels: EngineLabels::new(),
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
        engine_labels: EngineLabels::new(),
        from_backup_id: form.get("fromBackupId")?,
    })
}

async fn undelete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let params = |form: &Form| {
        Ok(UndeleteBackendInstance { instance_id: form.get("instanceId")?, app_id: None })
    };
    match visitor.send(&form, params).await {
        Ok(back) => done(&at(back.id), Note::plain(visitor.say().the_instance_comes_back())),
        Err(fault) => again(&visitor, project_id, form.refused(fault)).await,
    }
}
