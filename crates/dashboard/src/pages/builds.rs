//! The builds of an app, and their logs as they grow.

use super::{ListQuery, apps::AppTab, source};
use crate::{
    form::Form,
    frame::{Frame, View},
    job::{self, Job, LogPart},
    list::{CURSOR, ListPart},
    response::{Note, PageResult, Refused, form_page, leads_to},
    visitor::Visitor,
};
use actix_web::{HttpResponse, web};
use askama::Template;
use contract::{
    AppId, BuildId, Cursor, Fault, Limit,
    builds::{
        Build, BuildLogs, BuildState, BuildTrigger, CancelBuild, GetBuild, GetBuildLogs, GetBuilds,
        Labels, TriggerBuild,
    },
    repositories::Repository,
};
use messages::Messages;
use std::time::Duration;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/builds", web::get().to(list))
        .route("/apps/{id}/builds", web::post().to(trigger))
        .route("/builds/{id}", web::get().to(job::show::<BuildSummary>))
        .route("/builds/{id}/state", web::get().to(job::follow_state::<BuildSummary>))
        .route("/builds/{id}/log", web::get().to(job::follow_log::<BuildSummary>))
        .route("/builds/{id}/cancel", web::post().to(job::cancel::<BuildSummary>));
}

#[derive(Template)]
#[template(path = "builds.html")]
struct BuildsPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Build>,
    /// What is built, if the app has a repository.
    repository: Option<Repository>,
    form: Form,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let app_id = super::id(path, "app")?;
    list_with(&visitor, app_id, &query, Form::default()).await
}

async fn list_with(visitor: &Visitor, app_id: AppId, query: &ListQuery, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/builds").await?;
    let at = format!("/apps/{app_id}/builds");
    let list = ListPart::read(visitor, &at, query.form(), |form| {
        let cursor = form.get(CURSOR)?;
        Ok(GetBuilds { app_id, platform: None, state: None, limit: Limit::default(), cursor })
    })
    .await?;
    let repository = source::of_app(visitor, app_id).await?;
    form_page(&form.clone(), &BuildsPage { frame, tab, list, repository, form })
}

/// Triggers the build that a form asks for, and leads to it.
pub async fn triggered(
    visitor: &Visitor,
    app_id: AppId,
    form: &Form,
) -> Result<HttpResponse, Fault> {
    let params = TriggerBuild {
        app_id,
        platform: form.get("platform")?,
        profile: form.get("profile")?,
        git_ref: form.get("ref")?,
        trigger: BuildTrigger::default(),
        labels: Labels::default(),
    };
    let build = visitor.call(&params, form.key()).await?;
    let note = match build.warnings.as_slice() {
        [] => visitor.say().the_build_is(super::name(&visitor.say(), &build.state)),
        warnings => {
            let state = super::name(&visitor.say(), &build.state);
            visitor.say().the_build_is_with(state, warnings.join(" "))
        }
    };
    let note = Note::plain(note);
    Ok(leads_to(&format!("/builds/{}", build.id), note))
}

async fn trigger(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    match triggered(&visitor, app_id, &form).await {
        Ok(response) => Ok(response),
        Err(fault) => list_with(&visitor, app_id, &ListQuery::default(), form.refused(fault)).await,
    }
}

/// What changes while a build runs.
#[derive(Template)]
#[template(path = "build_state.html")]
struct BuildSummary {
    build: Build,
    frame: View,
}

impl Job for BuildSummary {
    type Id = BuildId;
    type Get = GetBuild;
    type GetLog = GetBuildLogs;
    type Cancel = CancelBuild;

    const ABOVE: &'static str = "/builds";
    const NOUN: &'static str = "build";
    const INTERVAL: Duration = Duration::from_secs(3);

    fn get(build_id: BuildId) -> GetBuild {
        GetBuild { build_id }
    }

    fn get_log(build_id: BuildId, cursor: Option<Cursor>) -> GetBuildLogs {
        GetBuildLogs { build_id, cursor }
    }

    fn cancel(build_id: BuildId) -> CancelBuild {
        CancelBuild { build_id }
    }

    fn new(build: Build, frame: View) -> BuildSummary {
        BuildSummary { build, frame }
    }

    fn log_part(BuildLogs { lines, next_cursor, done }: BuildLogs) -> LogPart {
        LogPart::new(lines.into_iter().map(|line| line.text), next_cursor, done)
    }

    fn cancelled(say: Messages, build: Build) -> Note {
        Note::plain(say.the_build_is(super::name(&say, &build.state)))
    }

    fn has_ended(&self) -> bool {
        use BuildState::{Cancelled, Failed, Succeeded, TimedOut};
        matches!(self.build.state, Succeeded | Failed | Cancelled | TimedOut)
    }

    fn cancel_label(&self, say: &Messages) -> String {
        say.cancel_the_build()
    }

    fn heading(&self) -> String {
        self.frame.messages.build_for(super::platform(self.build.platform))
    }

    fn command(&self) -> String {
        format!("svc builds logs {} --follow", self.build.id)
    }

    async fn frame(&self, visitor: &Visitor) -> Result<Frame, Refused> {
        let (frame, app) = Frame::in_app(visitor, |_| self.heading(), self.build.app_id).await?;
        Ok(frame.below_page(Messages::builds, format!("/apps/{}/builds", app.id)))
    }
}
