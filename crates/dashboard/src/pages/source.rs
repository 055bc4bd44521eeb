//! The repository of an app, what the service found in it, and the trigger of builds.

use super::{apps::AppTab, builds};
use crate::{
    form::Form,
    frame::Frame,
    response::{Note, PageResult, Refused, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, Function,
    repositories::{
        CheckRepository, ConnectRepository, DisconnectRepository, GetRepository,
        GetRepositoryWebhook, Repository, RepositoryMode, RepositoryWebhook, RunsIn,
    },
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/source", web::get().to(show))
        .route("/apps/{id}/source", web::post().to(connect))
        .route("/apps/{id}/source/check", web::post().to(check))
        .route("/apps/{id}/source/webhook", web::post().to(webhook))
        .route("/apps/{id}/source/disconnect", web::post().to(disconnect))
        .route("/apps/{id}/source/build", web::post().to(build));
}

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    frame: Frame,
    tab: AppTab,
    /// `None` if the app has no repository.
    repository: Option<Repository>,
    form: Form,
}

/// What the badge at the trigger of builds says: the mode of the repository, and where a build runs.
pub fn badge(say: &Messages, repository: &Repository) -> String {
    let is_managed = repository.mode == RepositoryMode::Managed;
    match (repository.runs_in, is_managed) {
        (Some(RunsIn::ClientCi), _) => say.managed_in_client_repository(),
        (Some(RunsIn::CentralCi), true) => say.managed_in_operators_ci(),
        (Some(RunsIn::Runner), true) => say.managed_on_a_runner(),
        (Some(RunsIn::CentralCi), false) => say.artifact_only_in_operators_ci(),
        (Some(RunsIn::Runner), false) => say.artifact_only_on_a_runner(),
        (None, _) => say.not_classified_yet(),
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "app")?, Form::default()).await
}

/// The repository of an app, if it has one.
pub async fn of_app(visitor: &Visitor, app_id: AppId) -> Result<Option<Repository>, Refused> {
    match visitor.read(&GetRepository { app_id }).await {
        Ok(repository) => Ok(Some(repository)),
        Err(Refused(Fault::NotFound(_))) => Ok(None),
        Err(refused) => Err(refused),
    }
}

async fn show_with(visitor: &Visitor, app_id: AppId, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/source").await?;
    let repository = of_app(visitor, app_id).await?;
    form_page(&form.clone(), &SourcePage { frame, tab, repository, form })
}

/// Sends a form of this page. `note` says what the reply tells.
async fn send<F: Function>(
    visitor: &Visitor,
    app_id: AppId,
    form: Form,
    params: impl FnOnce(&Form) -> Result<F, Fault>,
    note: impl Fn(&F::Reply) -> Note,
) -> PageResult {
    match visitor.send(&form, params).await {
        Ok(reply) => done(&format!("/apps/{app_id}/source"), note(&reply)),
        Err(fault) => show_with(visitor, app_id, form.refused(fault)).await,
    }
}

async fn connect(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id = super::id(path, "app")?;
    let params = |form: &Form| {
        Ok(ConnectRepository {
            app_id,
            url: form.get("url")?,
            branch: form.get("branch")?,
            token: form.get("token")?,
            installation_id: None,
            host_key: form.get("hostKey")?,
        })
    };
    let say = visitor.say();
    send(&visitor, app_id, form, params, |repository| {
        read(say, repository, say.the_repository_is_connected(), say.address_is_kept())
    })
    .await
}

async fn check(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id = super::id(path, "app")?;
    let say = visitor.say();
    send(
        &visitor,
        app_id,
        form,
        |_| Ok(CheckRepository { app_id }),
        |repository| {
            read(say, repository, say.repository_was_read_again(), say.repository_was_sought())
        },
    )
    .await
}

/// What is known of a repository after a form: it was read, it could not be, or a check still runs.
fn read(say: Messages, repository: &Repository, well: String, otherwise: String) -> Note {
    match &repository.error {
        Some(error) => Note::bad(say.could_not_be_read(otherwise, error)),
        None if repository.checking || repository.commit.is_none() => {
            Note::plain(say.check_of_files_is_under_way(otherwise))
        }
        None => well.into(),
    }
}

async fn build(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    match builds::triggered(&visitor, app_id, &form).await {
        Ok(response) => Ok(response),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}

async fn disconnect(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let repository = visitor.read(&GetRepository { app_id }).await?;
    let params = |form: &Form| {
        form.confirm(repository.url.to_string(), "the address of the repository")?;
        Ok(DisconnectRepository { app_id })
    };
    let note = |_: &_| visitor.say().the_repository_is_disconnected().into();
    send(&visitor, app_id, form, params, note).await
}

#[derive(Template)]
#[template(path = "repository_webhook.html")]
struct RepositoryWebhookPage {
    frame: Frame,
    tab: AppTab,
    webhook: RepositoryWebhook,
}

/// Shows the secret of the webhook of pushes, to who presses for it.
async fn webhook(visitor: Visitor, path: web::Path<String>, _: Form) -> PageResult {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "/source").await?;
    let webhook = visitor.read(&GetRepositoryWebhook { app_id }).await?;
    page(&RepositoryWebhookPage { frame, tab, webhook })
}
