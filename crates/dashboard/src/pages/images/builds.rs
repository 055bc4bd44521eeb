//! The builds of images, and their logs as they grow.

use crate::{
    answer::{Answer, Frame, done, form_page, page},
    form::Form,
    list::List,
    live::{self, Next},
    log::{self, Log, Seen},
    pages::{Part, operations},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    JobId, Timestamp,
    image_builds::{
        BuildJob, BuildJobState, BuildJobStatus, CancelDockerBuild, GetBuildJobLogs,
        GetBuildJobStatus, ListBuildJobs,
    },
};
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

#[derive(Template)]
#[template(path = "image_builds.html")]
struct Builds {
    frame: Frame,
    list: List<BuildJob>,
}

async fn list(visitor: Visitor, part: web::Query<Part>) -> Answer {
    let list = List::read::<ListBuildJobs>(&visitor, HERE, json!({}), &part.fields()).await?;
    let frame = operations::tab(&visitor, "/image-builds").await?;
    page(&Builds { frame, list })
}

#[derive(Template)]
#[template(path = "image_build.html")]
struct Show {
    frame: Frame,
    state: State,
    log: Log,
    form: Form,
}

/// What changes while a build runs.
#[derive(Template)]
#[template(path = "image_build_state.html")]
struct State {
    job: BuildJobStatus,
    now: Timestamp,
}

impl State {
    fn has_ended(&self) -> bool {
        use BuildJobState::{Cancelled, Failed, Succeeded};
        matches!(self.job.state, Succeeded | Failed | Cancelled)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, crate::pages::id(path, "build")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, job_id: JobId, form: Form) -> Answer {
    let job = visitor.read(&GetBuildJobStatus { job_id }).await?;
    let log = Log::read::<GetBuildJobLogs>(visitor, job_id, "").await?;
    let frame = Frame::of(visitor, &format!("Build of version {}", job.version)).await?;
    let frame = frame.below("Operations", "/operations").below("Image builds", HERE);
    let state = State { job, now: frame.now };
    form_page(&form.clone(), &Show { frame, state, log, form })
}

async fn follow_state(visitor: Visitor, path: web::Path<String>) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let job = visitor.read(&GetBuildJobStatus { job_id }).await?;
        let state = State { job, now: visitor.now() };
        let next = if state.has_ended() { Next::Never } else { Next::Later };
        live::replaced(&state, last, next)
    })
    .await
}

async fn follow_log(visitor: Visitor, path: web::Path<String>, seen: web::Query<Seen>) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    log::follow::<GetBuildJobLogs>(visitor, job_id, seen, INTERVAL).await
}

async fn cancel(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let job_id: JobId = crate::pages::id(path, "build")?;
    match visitor.send::<CancelDockerBuild>(&json!({"jobId": job_id}), form.key()).await {
        Ok(_) => done(&format!("{HERE}/{job_id}"), "The build is cancelled."),
        Err(fault) => show_with(&visitor, job_id, form.refused(fault)).await,
    }
}
