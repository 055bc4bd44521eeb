//! The builds of an app, and their logs as they grow.

use super::{Part, apps::Tab, source};
use crate::{
    answer::{Answer, Frame, Note, done, form_page, leads_to},
    form::Form,
    list::List,
    live::{self, Next},
    log::{self, Log, Seen},
    visitor::Visitor,
};
use actix_web::{HttpResponse, web};
use askama::Template;
use contract::{
    AppId, BuildId, Fault, Timestamp,
    builds::{Build, BuildState, CancelBuild, GetBuild, GetBuildLogs, GetBuilds, TriggerBuild},
    repositories::Repository,
};
use serde_json::{Value, json};
use std::time::Duration;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/builds", web::get().to(list))
        .route("/apps/{id}/builds", web::post().to(trigger))
        .route("/builds/{id}", web::get().to(show))
        .route("/builds/{id}/state", web::get().to(follow_state))
        .route("/builds/{id}/log", web::get().to(follow_log))
        .route("/builds/{id}/cancel", web::post().to(cancel));
}

/// The pause between looks at a build.
const INTERVAL: Duration = Duration::from_secs(3);

#[derive(Template)]
#[template(path = "builds.html")]
struct Builds {
    frame: Frame,
    tab: Tab,
    list: List<Build>,
    /// What is built, if the app has a repository.
    repository: Option<Repository>,
    form: Form,
}

async fn list(visitor: Visitor, path: web::Path<String>, part: web::Query<Part>) -> Answer {
    let app_id = super::id(path, "app")?;
    list_with(&visitor, app_id, &part, Form::default()).await
}

async fn list_with(visitor: &Visitor, app_id: AppId, part: &Part, form: Form) -> Answer {
    let (frame, tab) = Tab::open(visitor, app_id, "/builds").await?;
    let (at, of_app) = (format!("/apps/{app_id}/builds"), json!({"appId": app_id}));
    let list = List::read::<GetBuilds>(visitor, &at, of_app, &part.fields()).await?;
    let repository = source::of_app(visitor, app_id).await?;
    form_page(&form.clone(), &Builds { frame, tab, list, repository, form })
}

/// Triggers the build that a form asks for, and leads to it.
pub async fn triggered(
    visitor: &Visitor,
    app_id: AppId,
    form: &Form,
) -> Result<HttpResponse, Fault> {
    let mut params = form.params(&["platform", "profile", "ref"]);
    params.insert("appId".into(), json!(app_id));
    let build = visitor.send::<TriggerBuild>(&Value::Object(params), form.key()).await?;
    let note = match build.warnings.as_slice() {
        [] => format!("The build is {}.", super::name(&build.state)),
        warnings => format!("The build is {}. {}", super::name(&build.state), warnings.join(" ")),
    };
    let note = Note::plain(note);
    Ok(leads_to(&format!("/builds/{}", build.id), note))
}

async fn trigger(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let app_id: AppId = super::id(path, "app")?;
    match triggered(&visitor, app_id, &form).await {
        Ok(answer) => Ok(answer),
        Err(fault) => list_with(&visitor, app_id, &Part::default(), form.refused(fault)).await,
    }
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
