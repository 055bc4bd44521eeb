//! The builds of images, and their logs as they grow.

use crate::{
    frame::{Frame, View},
    job::{Job, LogPart, cancel, follow_log, follow_state, show},
    list::{CURSOR, ListPart},
    pages::{ListQuery, operations},
    response::{Note, PageResult, Refused, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Cursor, JobId, Limit,
    image_builds::{
        BuildJob, BuildJobLogs, BuildJobState, BuildJobStatus, CancelDockerBuild, GetBuildJobLogs,
        GetBuildJobStatus, ListBuildJobs,
    },
};
use messages::Messages;
use std::time::Duration;

const HERE: &str = "/operations/image-builds";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(list))
        .route("/operations/image-builds/{id}", web::get().to(show::<BuildSummary>))
        .route("/operations/image-builds/{id}/state", web::get().to(follow_state::<BuildSummary>))
        .route("/operations/image-builds/{id}/log", web::get().to(follow_log::<BuildSummary>))
        .route("/operations/image-builds/{id}/cancel", web::post().to(cancel::<BuildSummary>));
}

#[derive(Template)]
#[template(path = "image_builds.html")]
struct ImageBuildsPage {
    frame: Frame,
    list: ListPart<BuildJob>,
}

async fn list(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    let list = ListPart::read(&visitor, HERE, query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(ListBuildJobs { image_id: None, state: None, limit, cursor })
    })
    .await?;
    let frame = operations::tab(&visitor, "/image-builds").await?;
    page(&ImageBuildsPage { frame, list })
}

/// What changes while a build runs.
#[derive(Template)]
#[template(path = "image_build_state.html")]
struct BuildSummary {
    job: BuildJobStatus,
    frame: View,
}

impl Job for BuildSummary {
    type Id = JobId;
    type Get = GetBuildJobStatus;
    type GetLog = GetBuildJobLogs;
    type Cancel = CancelDockerBuild;

    const ABOVE: &'static str = HERE;
    const NOUN: &'static str = "build";
    const INTERVAL: Duration = Duration::from_secs(3);

    fn get(job_id: JobId) -> GetBuildJobStatus {
        GetBuildJobStatus { job_id }
    }

    fn get_log(job_id: JobId, cursor: Option<Cursor>) -> GetBuildJobLogs {
        GetBuildJobLogs { job_id, cursor }
    }

    fn cancel(job_id: JobId) -> CancelDockerBuild {
        CancelDockerBuild { job_id }
    }

    fn new(job: BuildJobStatus, frame: View) -> BuildSummary {
        BuildSummary { job, frame }
    }

    fn log_part(BuildJobLogs { lines, next_cursor, done }: BuildJobLogs) -> LogPart {
        LogPart::new(lines.into_iter().map(|line| line.text), next_cursor, done)
    }

    fn cancelled(say: Messages, _: BuildJob) -> Note {
        say.the_build_is_cancelled().into()
    }

    fn has_ended(&self) -> bool {
        use BuildJobState::{Cancelled, Failed, Succeeded};
        matches!(self.job.state, Succeeded | Failed | Cancelled)
    }

    fn cancel_label(&self, say: &Messages) -> String {
        say.cancel_the_build()
    }

    fn heading(&self) -> String {
        self.frame.messages.build_of_version(&self.job.version)
    }

    fn command(&self) -> String {
        format!("svc call getBuildJobLogs -p jobId={}", self.job.id)
    }

    async fn frame(&self, visitor: &Visitor) -> Result<Frame, Refused> {
        let frame = Frame::of(visitor, |_| self.heading()).await?;
        Ok(frame
            .below_page(Messages::menu_operations, "/operations")
            .below_page(Messages::image_builds, HERE))
    }
}
