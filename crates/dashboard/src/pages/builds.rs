//! The builds of an app, and their logs as they grow.

use super::apps::Tab;
use crate::{
    answer::{Answer, Frame, Refused, done, form_page, page},
    form::Form,
    live::{self, Next, Seen},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    BuildId, Page, Timestamp,
    builds::{
        Build, BuildLine, BuildLogs, BuildState, CancelBuild, GetBuild, GetBuildLogs, GetBuilds,
    },
};
use serde::Deserialize;
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

/// The part of a list that a person wants.
#[derive(Deserialize)]
struct Part {
    cursor: Option<String>,
}

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
    /// The position after the lines that the page shows.
    seen: String,
    /// Whether the log has no more lines. The log of one that ended can have more than one part.
    is_whole: bool,
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

#[derive(Template)]
#[template(path = "build_log.html")]
struct Log {
    lines: Vec<BuildLine>,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "build")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, build_id: BuildId, form: Form) -> Answer {
    let build = visitor.read(&GetBuild { build_id }).await?;
    let (logs, seen) = lines(visitor, build_id, "").await?;
    let frame = Frame::of(visitor, &format!("{} build", super::name(&build.platform))).await?;
    let app = format!("/apps/{}", build.app_id);
    let frame = frame.below("App", &app).below("Builds", format!("{app}/builds"));
    let state = State { build, now: frame.now };
    let (is_whole, log) = (logs.done, Log { lines: logs.lines });
    form_page(&form.clone(), &Show { frame, state, log, seen, is_whole, form })
}

/// The log after a position, and the position after that.
async fn lines(
    visitor: &Visitor,
    build_id: BuildId,
    after: &str,
) -> Result<(BuildLogs, String), Refused> {
    let cursor = Some(after).filter(|after| !after.is_empty());
    let part = json!({"buildId": build_id, "cursor": cursor});
    let logs = visitor.send::<GetBuildLogs>(&part, None).await?;
    let seen = logs.next_cursor.as_ref().map_or_else(|| after.to_owned(), |next| next.encode());
    Ok((logs, seen))
}

async fn follow_state(visitor: Visitor, path: web::Path<String>) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let build = visitor.read(&GetBuild { build_id }).await?;
        let state = State { build, now: visitor.now() };
        let next = if state.has_ended() { Next::Never } else { Next::Later };
        live::replaced(&state, last, next)
    })
}

async fn follow_log(visitor: Visitor, path: web::Path<String>, seen: web::Query<Seen>) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    let seen = seen.into_inner().after;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let (logs, position) = lines(visitor, build_id, last.unwrap_or(&seen)).await?;
        live::appended(logs.lines, position, logs.done, |lines| Log { lines }.render())
    })
}

async fn cancel(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let build_id: BuildId = super::id(path, "build")?;
    match visitor.send::<CancelBuild>(&json!({"buildId": build_id}), form.key()).await {
        Ok(_) => done(&format!("/builds/{build_id}"), "The build is cancelled."),
        Err(fault) => show_with(&visitor, build_id, form.refused(fault)).await,
    }
}
