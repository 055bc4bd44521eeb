//! An app: what there is, its artifacts and its releases.

use super::{
    artifacts, instances,
    releases::{
        self,
        line::{self, Stop},
        new::Version,
    },
};
use crate::{
    frame::{Frame, Tab},
    list,
    response::{PageResult, Refused, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Limit,
    apps::{App, GetApp},
    builds::{Build, GetBuilds},
    instances::{Instance, InstanceKind},
    releases::{PublicationState, Release, ReleaseState},
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}", web::get().to(show));
}

/// The tabs of an app: the last part of the address, and the label.
pub const TABS: &[Tab] = &[
    ("", Messages::overview),
    ("/releases", Messages::releases),
    ("/artifacts", Messages::artifacts),
    ("/builds", Messages::builds),
    ("/source", Messages::source),
    ("/publishing", Messages::publishing),
    ("/credentials", Messages::credentials),
    ("/checkouts", Messages::payments),
    ("/settings", Messages::settings),
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
        let (frame, _) =
            Frame::in_project(visitor, |_| app.name.to_string(), app.project_id).await?;
        let frame = frame.with_tabs(Messages::app, (&format!("/apps/{app_id}"), here), TABS);
        Ok((frame, AppTab { app }))
    }
}

/// What somebody should do next about an app, in one sentence with a button.
pub struct NextStep {
    words: String,
    address: String,
    label: String,
}

#[derive(Template)]
#[template(path = "app.html")]
struct AppPage {
    frame: Frame,
    tab: AppTab,
    api_url: String,
    application_id: String,
    has_artifacts: bool,
    line: Vec<Stop>,
    next: Option<NextStep>,
    builds: Vec<Build>,
    backend: Option<Instance>,
    market: Option<Instance>,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "").await?;
    let verified = artifacts::verified(&visitor, app_id).await?;
    let newest = releases::newest(&visitor, app_id).await?;
    let all =
        GetBuilds { app_id, platform: None, state: None, limit: Limit::at_most(5), cursor: None };
    let settings = visitor.settings();
    let show = AppPage {
        has_artifacts: !verified.is_empty(),
        line: line::of(&visitor, app_id).await?,
        next: next_step(visitor.say(), app_id, Version::all(verified).first(), &newest),
        builds: visitor.read(&all).await?.items,
        backend: instances::of_app(&visitor, app_id, InstanceKind::Backend).await?,
        market: instances::of_app(&visitor, app_id, InstanceKind::Market).await?,
        api_url: settings.api_url.clone(),
        application_id: settings.application_id.clone(),
        frame,
        tab,
    };
    page(&show)
}

/// What comes next: a version without a release, a draft, or a target that refused the last release.
fn next_step(
    say: Messages,
    app_id: AppId,
    version: Option<&Version>,
    newest: &[Release],
) -> Option<NextStep> {
    let released =
        |version: &&Version| newest.iter().any(|release| release.version == version.name);
    if let Some(version) = version.filter(|version| !released(version)) {
        return Some(NextStep {
            words: say.is_verified_for_nobody(&version.name),
            address: list::address(
                &format!("/apps/{app_id}/releases/new"),
                [("version", version.name.as_str())],
            ),
            label: say.release(&version.name),
        });
    }
    let last = newest.first()?;
    let (version, channel, address) =
        (&last.version, &last.channel, format!("/releases/{}", last.id));
    let failed = last.publications.iter().find(|p| p.state == PublicationState::Failed);
    match (last.state, failed) {
        (ReleaseState::Draft, _) => Some(NextStep {
            words: say.is_a_draft(version, channel),
            address,
            label: say.publish_version(version),
        }),
        // Nobody waits for what was withdrawn or replaced.
        (ReleaseState::RolledBack | ReleaseState::Superseded, _) | (_, None) => None,
        (_, Some(failed)) => {
            let why = failed.error.clone().unwrap_or_else(|| say.gave_no_reason());
            let target = super::target(&say, failed.target);
            Some(NextStep {
                words: say.target_refused(target, version, why),
                address,
                label: say.see_what_it_says(),
            })
        }
    }
}
