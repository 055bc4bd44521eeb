//! The client of the App Store.

use super::{
    AppStoreProgress,
    rules::{self, AppStoreStep},
};
use crate::{
    Advanced, AppStoreConnectKey, DesiredState, PublicationOrder, ReadAt, RemoteError, StoreClient,
    app_store_connect::{
        Api, KeyedApi, StepReport, shown_to,
        upload::{AppRecord, Uploader},
    },
};
use async_trait::async_trait;
use contract::{publishing::AppStoreOptions, releases::PublicationState};

/// The App Store, reached through the App Store Connect API.
pub struct AppStore {
    api: Api,
}

impl AppStore {
    /// The App Store at an address, which is [`crate::APP_STORE_CONNECT`] outside tests. The error
    /// says why the address cannot be used.
    pub fn new(address: &str) -> Result<AppStore, String> {
        Ok(AppStore { api: Api::new(address)? })
    }
}

/// What a step works with.
pub(super) struct AppStorePublisher<'a> {
    pub api: KeyedApi<'a>,
    pub order: &'a PublicationOrder<AppStoreOptions>,
    pub content: &'a dyn ReadAt,
}

#[async_trait]
impl StoreClient for AppStore {
    type Key = AppStoreConnectKey;
    type Options = AppStoreOptions;
    type Progress = AppStoreProgress;

    async fn advance(
        &self,
        key: &AppStoreConnectKey,
        order: &PublicationOrder<AppStoreOptions>,
        content: &dyn ReadAt,
        mut progress: AppStoreProgress,
    ) -> Result<Advanced<AppStoreProgress>, RemoteError> {
        let work = AppStorePublisher { api: self.api.with(key), order, content };
        let step = rules::next(&progress, order.wanted, &order.options);
        let step = step.map_err(RemoteError::Refused)?;
        progress.is_halted = false;
        let done = work.perform(step, &mut progress).await?;
        Ok(advanced(progress, done))
    }

    async fn check_access(
        &self,
        key: &AppStoreConnectKey,
        app: &str,
    ) -> Result<String, RemoteError> {
        shown_to(self.api.with(key), app, "appStoreVersionPhasedReleases").await
    }
}

fn advanced(progress: AppStoreProgress, done: StepReport) -> Advanced<AppStoreProgress> {
    let state = progress.state();
    let page = |app: &AppRecord| format!("https://apps.apple.com/app/id{}", app.id);
    Advanced {
        state,
        words: progress.words(),
        remote_id: progress.version.clone(),
        url: progress.upload.app.as_ref().filter(|_| state == PublicationState::Live).map(page),
        error: progress.failure().filter(|_| state == PublicationState::Failed),
        next: done.next(),
        log: done.log,
        progress,
    }
}

impl AppStorePublisher<'_> {
    async fn perform(
        &self,
        step: AppStoreStep,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        match step {
            AppStoreStep::Upload(step) => {
                let uploader = Uploader {
                    api: self.api,
                    app: &self.order.app,
                    file: &self.order.file,
                    content: self.content,
                    uses_non_exempt_encryption: self.order.options.uses_non_exempt_encryption,
                };
                uploader.perform(step, &mut progress.upload).await
            }
            AppStoreStep::Check => self.check(progress).await,
            AppStoreStep::EnsureVersion => self.ensure_version(progress).await,
            AppStoreStep::Attach => self.attach(progress).await,
            AppStoreStep::Note => self.note(progress).await,
            AppStoreStep::SetPhases => self.set_phases(progress).await,
            AppStoreStep::OpenSubmission => self.open_submission(progress).await,
            AppStoreStep::List => self.list(progress).await,
            AppStoreStep::Submit => self.submit(progress).await,
            AppStoreStep::Follow => self.follow(progress).await,
            AppStoreStep::TakeOut => self.take_out(progress).await,
            AppStoreStep::Rest => {
                progress.is_halted = self.order.wanted == DesiredState::Halted;
                Ok(StepReport::done())
            }
            AppStoreStep::Abandon => {
                progress.is_withdrawn = true;
                Ok(StepReport::done().and_say("The publication was given up before its review."))
            }
        }
    }
}

pub(super) fn app(progress: &AppStoreProgress) -> Result<&AppRecord, RemoteError> {
    progress.upload.app.as_ref().ok_or_else(incomplete)
}

pub(super) fn build(progress: &AppStoreProgress) -> Result<&str, RemoteError> {
    progress.upload.build.as_ref().map(|build| build.id.as_str()).ok_or_else(incomplete)
}

pub(super) fn known(id: &Option<String>) -> Result<&str, RemoteError> {
    id.as_deref().ok_or_else(incomplete)
}

fn incomplete() -> RemoteError {
    RemoteError::Refused("The progress of the publication is incomplete.".into())
}
