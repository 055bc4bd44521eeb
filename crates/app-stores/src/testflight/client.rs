//! The client of TestFlight.

use super::{
    TestflightProgress,
    progress::TesterGroup,
    rules::{self, TestflightStep},
};
use crate::{
    Advanced, AppStoreConnectKey, PublicationOrder, ReadAt, RemoteError, StoreClient,
    app_store_connect::{
        Api, AppleRequest, FOLLOW_REVIEW, KeyedApi, StepReport, checked_notes,
        documents::{
            BetaAppReviewSubmission, BetaGroup, Build, BuildBetaDetail, Localization, Many, One,
        },
        linked, resource, shown_to,
        upload::{AppRecord, Uploader},
    },
};
use async_trait::async_trait;
use contract::{publishing::TestflightOptions, releases::PublicationState};
use serde_json::{Value, json};
use std::time::Duration;

/// The pause between two looks at a build that only internal testers get.
const FOLLOW: Duration = Duration::from_secs(30);

/// TestFlight, reached through the App Store Connect API.
pub struct Testflight {
    api: Api,
}

impl Testflight {
    /// TestFlight at an address, which is [`crate::APP_STORE_CONNECT`] outside tests. The error says
    /// why the address cannot be used.
    pub fn new(address: &str) -> Result<Testflight, String> {
        Ok(Testflight { api: Api::new(address)? })
    }
}

/// What a step works with.
struct TestflightPublisher<'a> {
    api: KeyedApi<'a>,
    order: &'a PublicationOrder<TestflightOptions>,
    content: &'a dyn ReadAt,
}

#[async_trait]
impl StoreClient for Testflight {
    type Key = AppStoreConnectKey;
    type Options = TestflightOptions;
    type Progress = TestflightProgress;

    async fn advance(
        &self,
        key: &AppStoreConnectKey,
        order: &PublicationOrder<TestflightOptions>,
        content: &dyn ReadAt,
        mut progress: TestflightProgress,
    ) -> Result<Advanced<TestflightProgress>, RemoteError> {
        let work = TestflightPublisher { api: self.api.with(key), order, content };
        let step = rules::next(&progress, order.wanted).map_err(RemoteError::Refused)?;
        let done = work.perform(step, &mut progress).await?;
        Ok(advanced(progress, done))
    }

    async fn check_access(
        &self,
        key: &AppStoreConnectKey,
        app: &str,
    ) -> Result<String, RemoteError> {
        shown_to(self.api.with(key), app, "builds").await
    }
}

fn advanced(progress: TestflightProgress, done: StepReport) -> Advanced<TestflightProgress> {
    let error = progress.upload.failure.as_ref().or(progress.failure.as_ref());
    let groups = progress.groups.iter().flatten();
    let state = progress.state();
    Advanced {
        state,
        words: progress.words.clone().or_else(|| progress.upload.words.clone()),
        remote_id: progress.upload.build.as_ref().map(|build| build.id.clone()),
        url: groups.filter_map(|group| group.link.clone()).next(),
        error: error.filter(|_| state == PublicationState::Failed).cloned(),
        next: done.next(),
        log: done.log,
        progress,
    }
}

impl TestflightPublisher<'_> {
    async fn perform(
        &self,
        step: TestflightStep,
        progress: &mut TestflightProgress,
    ) -> Result<StepReport, RemoteError> {
        match step {
            TestflightStep::Upload(step) => {
                let uploader = Uploader {
                    api: self.api,
                    app: &self.order.app,
                    file: &self.order.file,
                    content: self.content,
                    uses_non_exempt_encryption: self.order.options.uses_non_exempt_encryption,
                };
                uploader.perform(step, &mut progress.upload).await
            }
            TestflightStep::FindGroups => self.find_groups(progress).await,
            TestflightStep::Note => self.note(progress).await,
            TestflightStep::Submit => self.submit(progress).await,
            TestflightStep::Offer => self.offer(progress).await,
            TestflightStep::Follow => self.follow(progress).await,
            TestflightStep::Expire => self.expire(progress).await,
            TestflightStep::OfferAgain => self.offer_again(progress).await,
            TestflightStep::Rest => Ok(StepReport::done()),
            TestflightStep::Abandon => {
                progress.is_abandoned = true;
                Ok(StepReport::done().and_say("The upload was given up."))
            }
        }
    }

    async fn find_groups(
        &self,
        progress: &mut TestflightProgress,
    ) -> Result<StepReport, RemoteError> {
        let app = app(progress)?;
        checked_notes(self.order, &app.language)?;
        let request = AppleRequest::get("/v1/betaGroups").with("filter[app]", &app.id);
        let found: Many<BetaGroup> = self.api.read(request.with("limit", "200")).await?;
        let all = found.data.into_iter().map(|found| group(found.id, found.attributes));
        let all: Vec<TesterGroup> = all.collect();
        let groups =
            rules::chosen(&all, &self.order.options.groups).map_err(RemoteError::Refused)?;
        let done = match groups.is_empty() && !all.iter().any(|group| group.has_all_builds) {
            false => StepReport::silently(),
            true => StepReport::saying(
                "No internal group has access to all builds, so that no tester gets the build.",
            ),
        };
        progress.groups = Some(groups);
        Ok(done)
    }

    /// Writes the notes in the first language in which they are not in place.
    async fn note(&self, progress: &mut TestflightProgress) -> Result<StepReport, RemoteError> {
        let build = build(progress)?;
        let notes = checked_notes(self.order, &app(progress)?.language)?;
        let request = AppleRequest::get(format!("/v1/builds/{build}/betaBuildLocalizations"));
        let there: Many<Localization> = self.api.read(request.with("limit", "50")).await?;
        for (language, text) in notes {
            let found = there.data.iter().find(|one| one.attributes.locale == language);
            let change = match found {
                Some(found) if found.attributes.whats_new.as_deref() == Some(text) => continue,
                Some(found) => {
                    let (kind, id) = ("betaBuildLocalizations", &found.id);
                    let body = resource(kind, Some(id), json!({"whatsNew": text}));
                    AppleRequest::patch(format!("/v1/{kind}/{id}"), body)
                }
                None => {
                    let attributes = json!({"locale": language, "whatsNew": text});
                    let to = [("build", "builds", build)];
                    let kind = "betaBuildLocalizations";
                    AppleRequest::post(format!("/v1/{kind}"), linked(kind, attributes, &to))
                }
            };
            self.api.change(change).await?;
            return Ok(StepReport::saying(format!(
                "The notes for testers are in place in {language}."
            )));
        }
        progress.noted = true;
        Ok(StepReport::silently())
    }

    /// Asks for the beta review of a build for external testers. They are told when it is over.
    async fn submit(&self, progress: &mut TestflightProgress) -> Result<StepReport, RemoteError> {
        if !progress.is_external() {
            progress.submitted = true;
            return Ok(StepReport::silently());
        }
        let build = build(progress)?;
        let (_, detail) = self.look(build).await?;
        if let Some((id, _)) = detail.filter(|(_, d)| d.auto_notify_enabled == Some(false)) {
            let body = resource("buildBetaDetails", Some(&id), json!({"autoNotifyEnabled": true}));
            self.api
                .change(AppleRequest::patch(format!("/v1/buildBetaDetails/{id}"), body))
                .await?;
        }
        let kind = "betaAppReviewSubmissions";
        let request = AppleRequest::get(format!("/v1/{kind}")).with("filter[build]", build);
        let there: Many<BetaAppReviewSubmission> = self.api.read(request).await?;
        if there.data.is_empty() {
            let body = linked(kind, Value::Null, &[("build", "builds", build)]);
            self.api.change(AppleRequest::post(format!("/v1/{kind}"), body)).await?;
        }
        progress.submitted = true;
        Ok(StepReport::saying("The build waits for the beta review."))
    }

    /// Gives the build to the first group that does not have it.
    async fn offer(&self, progress: &mut TestflightProgress) -> Result<StepReport, RemoteError> {
        let Some(group) = self.first_without(progress).await? else {
            progress.offered = true;
            return Ok(StepReport::silently());
        };
        let body = json!({"data": [{"type": "builds", "id": build(progress)?}]});
        let path = format!("/v1/betaGroups/{}/relationships/builds", group.id);
        self.api.change(AppleRequest::post(path, body)).await?;
        Ok(StepReport::saying(format!("The group {} has the build.", group.name)))
    }

    async fn offer_again(
        &self,
        progress: &mut TestflightProgress,
    ) -> Result<StepReport, RemoteError> {
        let (is_expired, _) = self.look(build(progress)?).await?;
        if is_expired {
            return Ok(expired(
                progress,
                "The build has expired, so that it is not offered again.",
            ));
        }
        match self.first_without(progress).await? {
            Some(_) => self.offer(progress).await,
            None => self.follow(progress).await,
        }
    }

    /// The first group of the publication that does not have the build.
    async fn first_without<'p>(
        &self,
        progress: &'p TestflightProgress,
    ) -> Result<Option<&'p TesterGroup>, RemoteError> {
        // Apple refuses builds for groups that have access to all.
        let given = |group: &&TesterGroup| !group.has_all_builds;
        let wanted: Vec<_> = progress.groups.iter().flatten().filter(given).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let request = AppleRequest::get("/v1/betaGroups")
            .with("filter[app]", &app(progress)?.id)
            .with("filter[builds]", build(progress)?)
            .with("limit", "200");
        let having: Many<BetaGroup> = self.api.read(request).await?;
        let has = |group: &&&TesterGroup| having.data.iter().any(|one| one.id == group.id);
        Ok(wanted.iter().find(|group| !has(group)).copied())
    }

    async fn follow(&self, progress: &mut TestflightProgress) -> Result<StepReport, RemoteError> {
        let (is_expired, detail) = self.look(build(progress)?).await?;
        if is_expired {
            return Ok(expired(progress, "The build has expired."));
        }
        let is_external = progress.is_external();
        let words = detail.and_then(|(_, detail)| match is_external {
            true => detail.external_build_state,
            false => detail.internal_build_state,
        });
        let is_news = progress.words != words;
        progress.words = words;
        let Some(words) = progress.words.as_deref() else { return Ok(StepReport::after(FOLLOW)) };
        let (state, failure) = rules::meaning(words);
        let mut done = match state {
            PublicationState::Live | PublicationState::Failed => StepReport::done(),
            PublicationState::InReview => StepReport::after(FOLLOW_REVIEW),
            _ => StepReport::after(FOLLOW),
        };
        if is_news {
            done = done.and_say(format!("The build is {words}."));
        }
        progress.failure = failure.map(str::to_owned);
        Ok(done)
    }

    async fn expire(&self, progress: &mut TestflightProgress) -> Result<StepReport, RemoteError> {
        let build = build(progress)?;
        let path = format!("/v1/builds/{build}");
        let found: Option<One<Build>> = self.api.find(AppleRequest::get(&path)).await?;
        let Some(found) = found else { return Ok(StepReport::after(FOLLOW)) };
        let found = found.data.attributes;
        match found.processing_state.as_deref() {
            Some("FAILED" | "INVALID") => {
                return Ok(expired(progress, "Apple could not process the build."));
            }
            Some("PROCESSING") => return Ok(StepReport::after(FOLLOW)),
            _ => {}
        }
        if found.expired != Some(true) {
            let body = resource("builds", Some(build), json!({"expired": true}));
            self.api.change(AppleRequest::patch(path, body)).await?;
        }
        Ok(expired(progress, "The build has expired: no tester can install it any more."))
    }

    /// Whether the build has expired, and where it stands for its testers.
    async fn look(
        &self,
        build: &str,
    ) -> Result<(bool, Option<(String, BuildBetaDetail)>), RemoteError> {
        let request =
            AppleRequest::get(format!("/v1/builds/{build}")).with("include", "buildBetaDetail");
        let found: One<Build> = self.api.read(request).await?;
        let detail = found.included("buildBetaDetails").map(|(id, detail)| (id.to_owned(), detail));
        Ok((found.data.attributes.expired == Some(true), detail))
    }
}

fn expired(progress: &mut TestflightProgress, why: &str) -> StepReport {
    progress.is_expired = true;
    progress.words = Some("EXPIRED".into());
    StepReport::done().and_say(why)
}

fn group(id: String, found: BetaGroup) -> TesterGroup {
    let is_internal = found.is_internal_group == Some(true);
    TesterGroup {
        id,
        name: found.name,
        is_internal,
        has_all_builds: is_internal && found.has_access_to_all_builds == Some(true),
        link: found.public_link,
    }
}

fn app(progress: &TestflightProgress) -> Result<&AppRecord, RemoteError> {
    progress.upload.app.as_ref().ok_or_else(incomplete)
}

fn build(progress: &TestflightProgress) -> Result<&str, RemoteError> {
    progress.upload.build.as_ref().map(|build| build.id.as_str()).ok_or_else(incomplete)
}

fn incomplete() -> RemoteError {
    RemoteError::Refused("The progress of the publication is incomplete.".into())
}
