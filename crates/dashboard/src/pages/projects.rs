//! Projects and their apps.

use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, OrganizationId, Page, ProjectId,
    apps::{App, CreateApp, ListApps},
    organizations::{GetOrganization, ListOrganizations, Organization},
    projects::{CreateProject, DeleteProject, GetProject, GetProjects, Project, UpdateProject},
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/projects", web::get().to(list))
        .route("/projects", web::post().to(create))
        .route("/projects/{id}", web::get().to(show))
        .route("/projects/{id}/apps", web::post().to(create_app))
        .route("/projects/{id}/settings", web::get().to(show_settings))
        .route("/projects/{id}/settings", web::post().to(change))
        .route("/projects/{id}/delete", web::post().to(delete));
}

/// The projects or apps that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProjectsQuery {
    query: String,
    cursor: String,
    /// The organization that the form for a new project begins with.
    organization_id: String,
}

impl ProjectsQuery {
    fn form(&self) -> Form {
        Form::search([("query", &self.query), (CURSOR, &self.cursor)])
    }
}

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage {
    frame: Frame,
    list: ListPart<Project>,
    /// The organizations of the projects.
    known: Vec<Organization>,
    /// The organizations of the menu.
    menu: Menu,
    form: Form,
}

/// The organizations that a project may be made in.
struct Menu {
    items: Vec<Organization>,
    /// Whether there are more than a menu shows.
    is_cut: bool,
}

impl ProjectsPage {
    fn organization(&self, project: &Project) -> &str {
        let found = self.known.iter().find(|found| found.id == project.organization_id);
        found.map_or("", |found| found.name.as_str())
    }
}

async fn list(visitor: Visitor, query: web::Query<ProjectsQuery>) -> PageResult {
    let form = Form::filled([("organizationId", query.organization_id.clone())]);
    list_with(&visitor, &query, form).await
}

async fn list_with(visitor: &Visitor, query: &ProjectsQuery, form: Form) -> PageResult {
    let frame = Frame::of(visitor, Messages::menu_projects).await?;
    let list = ListPart::read(visitor, "/projects", query.form(), |form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetProjects { organization_id: None, query, limit: Limit::default(), cursor })
    })
    .await?;
    let menu = menu(visitor, form.value("organizationId")).await?;
    let known = organizations_of(visitor, &list.items, &menu.items).await?;
    form_page(&form.clone(), &ProjectsPage { frame, list, known, menu, form })
}

/// The newest organizations of the person, and the one that is chosen already.
async fn menu(visitor: &Visitor, chosen: &str) -> Result<Menu, Refused> {
    let all = ListOrganizations { query: None, limit: Limit::MOST, cursor: None };
    let Page { mut items, next_cursor, .. } = visitor.read(&all).await?;
    let is_there = items.iter().any(|organization| organization.id.to_string() == chosen);
    if let Some(organization_id) = chosen.parse().ok().filter(|_| !is_there) {
        items.extend(organization(visitor, organization_id).await?);
    }
    Ok(Menu { items, is_cut: next_cursor.is_some() })
}

/// The organizations of projects. Most are in the menu.
async fn organizations_of(
    visitor: &Visitor,
    projects: &[Project],
    menu: &[Organization],
) -> Result<Vec<Organization>, Refused> {
    let mut known = menu.to_vec();
    for project in projects {
        let id = project.organization_id;
        if !known.iter().any(|organization| organization.id == id) {
            known.extend(organization(visitor, id).await?);
        }
    }
    Ok(known)
}

/// An organization, if the person may see it.
async fn organization(
    visitor: &Visitor,
    organization_id: OrganizationId,
) -> Result<Option<Organization>, Refused> {
    match visitor.read(&GetOrganization { organization_id }).await {
        Ok(organization) => Ok(Some(organization)),
        Err(Refused(Fault::NotFound(_) | Fault::Forbidden(_))) => Ok(None),
        Err(refused) => Err(refused),
    }
}

async fn create(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(CreateProject {
            name: form.get("name")?,
            organization_id: form.get("organizationId")?,
            description: form.get("description")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(project) => {
            done(&format!("/projects/{}", project.id), visitor.say().the_project_is_there())
        }
        Err(fault) => list_with(&visitor, &ProjectsQuery::default(), form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "project.html")]
struct ProjectPage {
    frame: Frame,
    project: Project,
    list: ListPart<App>,
    form: Form,
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ProjectsQuery>,
) -> PageResult {
    show_with(&visitor, super::id(path, "project")?, &query, Form::default()).await
}

async fn show_with(
    visitor: &Visitor,
    project_id: ProjectId,
    query: &ProjectsQuery,
    form: Form,
) -> PageResult {
    let at = format!("/projects/{project_id}");
    let list = ListPart::read(visitor, &at, query.form(), |form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(ListApps { project_id, query, limit: Limit::default(), cursor })
    })
    .await?;
    let (frame, project) = Frame::of_project(visitor, project_id).await?;
    form_page(&form.clone(), &ProjectPage { frame, project, list, form })
}

async fn create_app(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let params = |form: &Form| {
        Ok(CreateApp {
            project_id,
            name: form.get("name")?,
            platforms: None,
            bundle_id: form.get("bundleId")?,
            package_name: form.get("packageName")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(app) => done(&format!("/apps/{}", app.id), visitor.say().the_app_is_made()),
        Err(fault) => {
            show_with(&visitor, project_id, &ProjectsQuery::default(), form.refused(fault)).await
        }
    }
}

#[derive(Template)]
#[template(path = "project_settings.html")]
struct ProjectSettingsPage {
    frame: Frame,
    project: Project,
    form: Form,
}

async fn show_settings(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let project = visitor.read(&GetProject { project_id }).await?;
    let description = project.description.as_ref().map(ToString::to_string).unwrap_or_default();
    let form = Form::filled([("name", project.name.to_string()), ("description", description)]);
    settings_with(&visitor, project, form).await
}

async fn settings_with(visitor: &Visitor, project: Project, form: Form) -> PageResult {
    let (frame, project) = Frame::in_project(visitor, Messages::settings, project.id).await?;
    form_page(&form.clone(), &ProjectSettingsPage { frame, project, form })
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let params = |form: &Form| {
        Ok(UpdateProject {
            project_id,
            name: Some(form.get("name")?),
            description: form.get("description")?,
            member_ids: None,
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&format!("/projects/{project_id}"), visitor.say().the_project_is_changed()),
        Err(fault) => {
            let project = visitor.read(&GetProject { project_id }).await?;
            settings_with(&visitor, project, form.refused(fault)).await
        }
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let project_id: ProjectId = super::id(path, "project")?;
    let project = visitor.read(&GetProject { project_id }).await?;
    let params = |form: &Form| {
        form.confirm(project.name.as_str(), "the name of the project")?;
        Ok(DeleteProject { project_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/projects", visitor.say().the_project_is_deleted()),
        Err(fault) => settings_with(&visitor, project, form.refused(fault)).await,
    }
}
