//! An app: what there is, its artifacts and its releases.

use super::{artifacts, instances, releases};
use crate::{
    response::{Frame, PageResult, Refused, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId,
    apps::{App, GetApp},
    instances::{Instance, InstanceKind},
    projects::GetProject,
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}", web::get().to(show));
}

/// The tabs of an app: the last part of the address, and the label.
const TABS: &[(&str, &str)] = &[
    ("", "Overview"),
    ("/source", "Source"),
    ("/builds", "Builds"),
    ("/artifacts", "Artifacts"),
    ("/releases", "Releases"),
    ("/publishing", "Publishing"),
    ("/credentials", "Credentials"),
];

/// The app that all tabs are about.
pub struct AppTab {
    pub app: App,
}

impl AppTab {
    /// Reads the app. `here` is the last part of the address of the tab.
    pub async fn open(
        visitor: &Visitor,
        app_id: AppId,
        here: &str,
    ) -> Result<(Frame, AppTab), Refused> {
        let app = visitor.read(&GetApp { app_id }).await?;
        let project = visitor.read(&GetProject { project_id: app.project_id }).await?;
        let frame = Frame::of(visitor, app.name.as_str()).await?;
        let frame = frame.below("Projects", "/");
        let frame = frame.below(&project.name, format!("/projects/{}", project.id));
        let frame = frame.with_tabs("App", (&format!("/apps/{app_id}"), here), TABS);
        Ok((frame, AppTab { app }))
    }
}

#[derive(Template)]
#[template(path = "app.html")]
struct AppPage {
    frame: Frame,
    tab: AppTab,
    api_url: String,
    application_id: String,
    has_artifacts: bool,
    has_releases: bool,
    backend: Option<Instance>,
    market: Option<Instance>,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "").await?;
    let has_artifacts = !artifacts::verified(&visitor, app_id).await?.is_empty();
    let has_releases = releases::has_any(&visitor, app_id).await?;
    let backend = instances::of_app(&visitor, app_id, InstanceKind::Backend).await?;
    let market = instances::of_app(&visitor, app_id, InstanceKind::Market).await?;
    let settings = visitor.settings();
    let (api_url, application_id) = (settings.api_url.clone(), settings.application_id.clone());
    let show = AppPage {
        frame,
        tab,
        api_url,
        application_id,
        has_artifacts,
        has_releases,
        backend,
        market,
    };
    page(&show)
}
