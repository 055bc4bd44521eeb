//! The builds of images, and their logs as they grow.

use crate::{
    answer::{Answer, Frame, Refused, done, form_page, page},
    form::Form,
    live::{self, Next, Seen},
    pages::operations::TABS,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    JobId, Page, Timestamp,
    image_builds::{
        BuildJob, BuildJobLine, BuildJobLogs, BuildJobState, CancelDockerBuild, GetBuildJobLogs,
        GetBuildJobStatus, ListBuildJobs,
    },
};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

const HERE: &str = "/operations/image-builds";
/// The pause between looks at a build.
const INTERVAL: Duration = Duration::from_secs(3);

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(list))
        .route("/operations/image-builds/{id}", web::get().to(show))
        .route("/operations/image-builds/{id}/state", web::get().to(follow_state))
        .route("/operations/image-builds/{id}/log", web::get().to(follow_log))
        .route("/operations/image-builds/{id}/cancel", web::post().to(cancel));
}

/// The part of a list that a person wants.
#[derive(Deserialize)]
struct Part {
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "image_builds.html")]
struct List {
    frame: Frame,
    builds: Page<BuildJob>,
}

impl List {
    fn tabs(&self) -> &'static [(&'static str, &'static str)] {
        TABS
    }

    fn is_here(&self, address: &str) -> bool {
        address == HERE
    }
}

async fn list(visitor: Visitor, part: web::Query<Part>) -> Answer {
    let builds = visitor.send::<ListBuildJobs>(&json!({"cursor": part.cursor}), None).await?;
    let frame = Frame::of(&visitor, "Operations").await?;
    page(&List { frame, builds })
}

#[derive(Template)]
#[template(path = "image_build.html")]
struct Show {
    frame: Frame,
    state: State,
    log: Log,
    /// The position after the lines that the page shows.
    seen: String,
    /// Whether the log has no more lines. The log of an ended build can have more than one part.
    is_whole: bool,
    form: Form,
}

/// What changes while a build runs.
#[derive(Template)]
#[template(path = "image_build_state.html")]
struct State {
    job: BuildJob,
    now: Timestamp,
}

impl State {
    fn has_ended(&self) -> bool {
        use BuildJobState::{Cancelled, Failed, Succeeded};
        matches!(self.job.state, Succeeded | Failed | Cancelled)
    }
}

#[derive(Template)]
#[template(path = "image_build_log.html")]
struct Log {
    lines: Vec<BuildJobLine>,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, crate::pages::id(path, "build")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, job_id: JobId, form: Form) -> Answer {
    let job = visitor.read(&GetBuildJobStatus { job_id }).await?.job;
    let (logs, seen) = lines(visitor, job_id, "").await?;
    let frame = Frame::of(visitor, &format!("Build of version {}", job.version)).await?;
    let frame = frame.below("Operations", "/operations").below("Image builds", HERE);
    let state = State { job, now: frame.now };
    let (is_whole, log) = (logs.done, Log { lines: logs.lines });
    form_page(&form.clone(), &Show { frame, state, log, seen, is_whole, form })
}

/// The log after a position, and the position after that.
async fn lines(
    visitor: &Visitor,
    job_id: JobId,
    after: &str,
) -> Result<(BuildJobLogs, String), Refused> {
    let cursor = Some(after).filter(|after| !after.is_empty());
    let part = json!({"jobId": job_id, "cursor": cursor});
    let logs = visitor.send::<GetBuildJobLogs>(&part, None).await?;
    let seen = logs.next_cursor.as_ref().map_or_else(|| after.to_owned(), |next| next.encode());
    Ok((logs, seen))
}

async fn follow_state(visitor: Visitor, path: web::Path<String>) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let job = visitor.read(&GetBuildJobStatus { job_id }).await?.job;
        let state = State { job, now: visitor.now() };
        let next = if state.has_ended() { Next::Never } else { Next::Later };
        live::replaced(&state, last, next)
    })
}

async fn follow_log(visitor: Visitor, path: web::Path<String>, seen: web::Query<Seen>) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    let seen = seen.into_inner().after;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let (logs, position) = lines(visitor, job_id, last.unwrap_or(&seen)).await?;
        live::appended(logs.lines, position, logs.done, |lines| Log { lines }.render())
    })
}

async fn cancel(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    match visitor.send::<CancelDockerBuild>(&json!({"jobId": job_id}), form.key()).await {
        Ok(_) => done(&format!("{HERE}/{job_id}"), "The build is cancelled."),
        Err(fault) => show_with(&visitor, job_id, form.refused(fault)).await,
    }
}
