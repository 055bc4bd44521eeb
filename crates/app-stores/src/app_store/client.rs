//! The client of the App Store.

use super::{
    Progress,
    rules::{self, Step},
};
use crate::{
    Advanced, Content, Key, Options, Order, Progress as AnyProgress, RemoteError, Store, Wanted,
    app_store_connect::{
        Api, Done, Session, apple_key, shown_to,
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
pub(super) struct Work<'a> {
    pub session: Session<'a>,
    pub order: &'a Order,
    pub content: &'a dyn Content,
    pub options: &'a AppStoreOptions,
}

#[async_trait]
impl Store for AppStore {
    async fn advance(
        &self,
        key: &Key,
        order: &Order,
        content: &dyn Content,
        progress: &AnyProgress,
    ) -> Result<Advanced, RemoteError> {
        let mut progress = match progress {
            AnyProgress::None => Progress::default(),
            AnyProgress::AppStore(progress) => progress.clone(),
            _ => {
                return Err(RemoteError::Refused(
                    "This is no publication in the App Store.".into(),
                ));
            }
        };
        let Options::AppStore(options) = &order.options else {
            return Err(RemoteError::Refused(
                "The choices are not those for the App Store.".into(),
            ));
        };
        let session = self.api.with(apple_key(key)?);
        let work = Work { session, order, content, options };
        let step = rules::next(&progress, order.wanted, options).map_err(RemoteError::Refused)?;
        progress.is_halted = false;
        let done = work.perform(step, &mut progress).await?;
        Ok(advanced(progress, done))
    }

    async fn check_access(&self, key: &Key, app: &str) -> Result<String, RemoteError> {
        let session = self.api.with(apple_key(key)?);
        shown_to(session, app, "appStoreVersionPhasedReleases").await
    }
}

fn advanced(progress: Progress, done: Done) -> Advanced {
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
        progress: AnyProgress::AppStore(progress),
    }
}

impl Work<'_> {
    async fn perform(&self, step: Step, progress: &mut Progress) -> Result<Done, RemoteError> {
        match step {
            Step::Upload(step) => {
                let uploader = Uploader {
                    session: self.session,
                    order: self.order,
                    content: self.content,
                    uses_non_exempt_encryption: self.options.uses_non_exempt_encryption,
                };
                uploader.perform(step, &mut progress.upload).await
            }
            Step::Check => self.check(progress).await,
            Step::EnsureVersion => self.ensure_version(progress).await,
            Step::Attach => self.attach(progress).await,
            Step::Note => self.note(progress).await,
            Step::SetPhases => self.set_phases(progress).await,
            Step::OpenSubmission => self.open_submission(progress).await,
            Step::List => self.list(progress).await,
            Step::Submit => self.submit(progress).await,
            Step::Follow => self.follow(progress).await,
            Step::TakeOut => self.take_out(progress).await,
            Step::Rest => {
                progress.is_halted = self.order.wanted == Wanted::Halted;
                Ok(Done::settled())
            }
            Step::Abandon => {
                progress.is_withdrawn = true;
                Ok(Done::settled().and_say("The publication was given up before its review."))
            }
        }
    }
}

pub(super) fn app(progress: &Progress) -> Result<&AppRecord, RemoteError> {
    progress.upload.app.as_ref().ok_or_else(incomplete)
}

pub(super) fn build(progress: &Progress) -> Result<&str, RemoteError> {
    progress.upload.build.as_ref().map(|build| build.id.as_str()).ok_or_else(incomplete)
}

pub(super) fn known(id: &Option<String>) -> Result<&str, RemoteError> {
    id.as_deref().ok_or_else(incomplete)
}

fn incomplete() -> RemoteError {
    RemoteError::Refused("The progress of the publication is incomplete.".into())
}
