//! The builds of an app, and their logs as they grow.

use super::{Part, apps::Tab};
use crate::{
    answer::{Answer, Frame, Note, done, form_page, page},
    form::Form,
    live::{self, Next},
    log::{self, Log, Seen},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    BuildId, Page, Timestamp,
    builds::{Build, BuildState, CancelBuild, GetBuild, GetBuildLogs, GetBuilds},
};
use serde_json::json;
use std::time::Duration;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/builds", web::get().to(list))
        .route("/builds/{id}", web::get().to(show))
        .route("/builds/{id}/state", web::get().to(follow_state))
        .route("/builds/{id}/log", web::get().to(follow_log))
        .route("/builds/{id}/cancel", web::post().to(cancel));
}

/// The pause between looks at a build.
const INTERVAL: Duration = Duration::from_secs(3);

#[derive(Template)]
#[template(path = "builds.html")]
struct List {
    frame: Frame,
    tab: Tab,
    builds: Page<Build>,
}

async fn list(visitor: Visitor, path: web::Path<String>, part: web::Query<Part>) -> Answer {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = Tab::open(&visitor, app_id, "/builds").await?;
    let part = json!({"appId": app_id, "cursor": part.cursor});
    let builds = visitor.send::<GetBuilds>(&part, None).await?;
    page(&List { frame, tab, builds })
}

#[derive(Template)]
#[template(path = "build.html")]
struct Show {
    frame: Frame,
    state: State,
    log: Log,
    form: Form,
}

/// What changes while a build runs.
#[derive(Template)]
#[template(path = "build_state.html")]
struct State {
    build: Build,
    now: Timestamp,
}

impl State {
    fn has_ended(&self) -> bool {
        use BuildState::{Cancelled, Failed, Succeeded, TimedOut};
        matches!(self.build.state, Succeeded | Failed | Cancelled | TimedOut)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "build")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, build_id: BuildId, form: Form) -> Answer {
    let build = visitor.read(&GetBuild { build_id }).await?;
    let log = Log::read::<GetBuildLogs>(visitor, build_id, "").await?;
    let frame = Frame::of(visitor, &format!("{} build", super::name(&build.platform))).await?;
    let app = format!("/apps/{}", build.app_id);
    let frame = frame.below("App", &app).below("Builds", format!("{app}/builds"));
    let state = State { build, now: frame.now };
    form_page(&form.clone(), &Show { frame, state, log, form })
}

async fn follow_state(visitor: Visitor, path: web::Path<String>) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let build = visitor.read(&GetBuild { build_id }).await?;
        let state = State { build, now: visitor.now() };
        let next = if state.has_ended() { Next::Never } else { Next::Later };
        live::replaced(&state, last, next)
    })
    .await
}

async fn follow_log(visitor: Visitor, path: web::Path<String>, seen: web::Query<Seen>) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    log::follow::<GetBuildLogs>(visitor, build_id, seen, INTERVAL).await
}

async fn cancel(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    match visitor.send::<CancelBuild>(&json!({"buildId": build_id}), form.key()).await {
        Ok(build) => done(
            &format!("/builds/{build_id}"),
            Note::plain(format!("The build is {}.", super::name(&build.state))),
        ),
        Err(fault) => show_with(&visitor, build_id, form.refused(fault)).await,
    }
}
