//! Projects and their apps.

use crate::{
    answer::{Answer, Frame, done, form_page},
    form::Form,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, Page, ProjectId,
    apps::{App, CreateApp, ListApps},
    organizations::{ListOrganizations, Organization},
    projects::{CreateProject, DeleteProject, GetProject, GetProjects, Project, UpdateProject},
};
use serde_json::{Value, json};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/", web::get().to(list))
        .route("/projects", web::post().to(create))
        .route("/projects/{id}", web::get().to(show))
        .route("/projects/{id}/apps", web::post().to(create_app))
        .route("/projects/{id}/settings", web::get().to(show_settings))
        .route("/projects/{id}/settings", web::post().to(change))
        .route("/projects/{id}/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "projects.html")]
struct List {
    frame: Frame,
    projects: Page<Project>,
    organizations: Vec<Organization>,
    form: Form,
}

impl List {
    fn organization(&self, project: &Project) -> &str {
        let found = self.organizations.iter().find(|found| found.id == project.organization_id);
        found.map_or("", |found| found.name.as_str())
    }
}

async fn list(visitor: Visitor) -> Answer {
    list_with(&visitor, Form::default()).await
}

async fn list_with(visitor: &Visitor, form: Form) -> Answer {
    let frame = Frame::of(visitor, "Projects").await?;
    let all = GetProjects { organization_id: None, limit: Limit::default(), cursor: None };
    let projects = visitor.read(&all).await?;
    let organizations =
        visitor.read(&ListOrganizations { limit: Limit::default(), cursor: None }).await?.items;
    form_page(&form.clone(), &List { frame, projects, organizations, form })
}

async fn create(visitor: Visitor, form: Form) -> Answer {
    let params = Value::Object(form.params(&["name", "organizationId", "description"]));
    match visitor.send::<CreateProject>(&params, form.key()).await {
        Ok(project) => done(&format!("/projects/{}", project.id), "The project is there."),
        Err(fault) => list_with(&visitor, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "project.html")]
struct Show {
    frame: Frame,
    project: Project,
    apps: Page<App>,
    form: Form,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "project")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, project_id: ProjectId, form: Form) -> Answer {
    let project = visitor.read(&GetProject { project_id }).await?;
    let apps =
        visitor.read(&ListApps { project_id, limit: Limit::default(), cursor: None }).await?;
    let frame = Frame::of(visitor, project.name.as_str()).await?.below("Projects", "/");
    form_page(&form.clone(), &Show { frame, project, apps, form })
}

async fn create_app(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    let mut params = form.params(&["name", "bundleId", "packageName"]);
    params.insert("projectId".into(), json!(project_id));
    match visitor.send::<CreateApp>(&Value::Object(params), form.key()).await {
        Ok(app) => done(&format!("/apps/{}", app.id), "The app is there."),
        Err(fault) => show_with(&visitor, project_id, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "project_settings.html")]
struct Settings {
    frame: Frame,
    project: Project,
    form: Form,
}

async fn show_settings(visitor: Visitor, path: web::Path<String>) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    let project = visitor.read(&GetProject { project_id }).await?;
    let description = project.description.as_ref().map(ToString::to_string).unwrap_or_default();
    let form = Form::filled([("name", project.name.to_string()), ("description", description)]);
    settings_with(&visitor, project, form).await
}

async fn settings_with(visitor: &Visitor, project: Project, form: Form) -> Answer {
    let frame = Frame::of(visitor, "Settings").await?;
    let at = format!("/projects/{}", project.id);
    let frame = frame.below("Projects", "/").below(&project.name, at);
    form_page(&form.clone(), &Settings { frame, project, form })
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    let description = Some(form.value("description")).filter(|text| !text.is_empty());
    let params =
        json!({"projectId": project_id, "name": form.value("name"), "description": description});
    match visitor.send::<UpdateProject>(&params, form.key()).await {
        Ok(_) => done(&format!("/projects/{project_id}"), "The project is changed."),
        Err(fault) => {
            let project = visitor.read(&GetProject { project_id }).await?;
            settings_with(&visitor, project, form.refused(fault)).await
        }
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let project_id: ProjectId = super::id(path, "project")?;
    let project = visitor.read(&GetProject { project_id }).await?;
    if form.value("confirmation") != project.name.as_str() {
        let fault = Fault::invalid("confirmation", "is not the name of the project");
        return settings_with(&visitor, project, form.refused(fault)).await;
    }
    match visitor.send::<DeleteProject>(&json!({"projectId": project_id}), form.key()).await {
        Ok(_) => done("/", "The project is deleted."),
        Err(fault) => settings_with(&visitor, project, form.refused(fault)).await,
    }
}
