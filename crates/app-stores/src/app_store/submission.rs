//! The steps of a submission for review.
//!
//! Source: `reviewSubmissions` and `reviewSubmissionItems` of Apple's description. An app may have
//! several unfinished submissions, and a version is part of one at most.

use super::{
    AppStoreProgress,
    client::{AppStorePublisher, app, build, known},
};
use crate::{
    RemoteError,
    app_store_connect::{
        AppleRequest, StepReport,
        documents::{Anything, Many, One, Resource, ReviewSubmission},
        linked, resource,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

const SUBMISSIONS: &str = "/v1/reviewSubmissions";
const ITEMS: &str = "/v1/reviewSubmissionItems";
/// The pause between two looks at a submission that Apple cancels.
const CANCELLED_SOON: Duration = Duration::from_secs(10);

impl AppStorePublisher<'_> {
    /// Finds a submission that was not sent, or creates one. One that Apple refused is closed first,
    /// because its version cannot be part of another.
    pub(super) async fn open_submission(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let app = &app(progress)?.id;
        let version = known(&progress.version)?;
        let request = AppleRequest::get(SUBMISSIONS)
            .with("filter[app]", app)
            .with("filter[platform]", "IOS")
            .with("filter[state]", "READY_FOR_REVIEW,UNRESOLVED_ISSUES,CANCELING")
            .with("limit", "50");
        let there: Many<ReviewSubmission> = self.api.read(request).await?;
        let mut empty = None;
        for submission in &there.data {
            let items = self.items(&submission.id).await?;
            let has_version =
                items.iter().any(|item| item.related("appStoreVersion") == Some(version));
            match (state(submission), has_version) {
                ("CANCELING", true) => return Ok(StepReport::after(CANCELLED_SOON)),
                ("UNRESOLVED_ISSUES", true) => {
                    self.cancel(&submission.id).await?;
                    return Ok(StepReport::after(CANCELLED_SOON)
                        .and_say("The submission that Apple refused is closed."));
                }
                ("READY_FOR_REVIEW", true) if items.len() > 1 => {
                    return Err(RemoteError::Refused(
                        "The version is part of a submission with other things in App Store \
                         Connect. Submit or empty it there, under App Review."
                            .into(),
                    ));
                }
                ("READY_FOR_REVIEW", true) => {
                    empty = Some(submission.id.clone());
                    break;
                }
                ("READY_FOR_REVIEW", false) if items.is_empty() => {
                    empty = empty.or(Some(submission.id.clone()));
                }
                _ => {}
            }
        }
        let id = match empty {
            Some(id) => id,
            None => {
                let attributes = json!({"platform": "IOS"});
                let body = linked("reviewSubmissions", attributes, &[("app", "apps", app)]);
                let created: One<ReviewSubmission> =
                    self.api.read(AppleRequest::post(SUBMISSIONS, body)).await?;
                created.data.id
            }
        };
        progress.submission = Some(id);
        Ok(StepReport::silently())
    }

    pub(super) async fn list(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let (submission, version) = (known(&progress.submission)?, known(&progress.version)?);
        let items = self.items(submission).await?;
        if !items.iter().any(|item| item.related("appStoreVersion") == Some(version)) {
            let to = [
                ("reviewSubmission", "reviewSubmissions", submission),
                ("appStoreVersion", "appStoreVersions", version),
            ];
            let body = linked("reviewSubmissionItems", Value::Null, &to);
            self.api.change(AppleRequest::post(ITEMS, body)).await?;
        }
        progress.listed = true;
        Ok(StepReport::silently())
    }

    pub(super) async fn submit(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let id = known(&progress.submission)?;
        let Some(found) = self.submission(id).await? else {
            (progress.submission, progress.listed) = (None, false);
            return Ok(StepReport::silently());
        };
        if state(&found) == "READY_FOR_REVIEW" {
            let version = self.look_at_version(known(&progress.version)?).await?;
            let is_ours = version.build.as_deref() == Some(build(progress)?)
                && version.version.version_string == self.order.file.version;
            if !is_ours {
                return Err(RemoteError::Refused(
                    "Somebody changed the version or its build in App Store Connect, so that it was \
                     not submitted. Publish again."
                        .into(),
                ));
            }
            let body = resource("reviewSubmissions", Some(id), json!({"submitted": true}));
            self.api.change(AppleRequest::patch(format!("{SUBMISSIONS}/{id}"), body)).await?;
        }
        progress.submitted = true;
        Ok(StepReport::saying("The version was submitted for review."))
    }

    /// Takes the version out of a submission, unless Apple has it already.
    pub(super) async fn take_out(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let id = known(&progress.submission)?;
        let version = known(&progress.version)?;
        let found = self.submission(id).await?;
        if found.is_some_and(|found| state(&found) != "READY_FOR_REVIEW") {
            progress.submitted = true;
            return Ok(StepReport::silently());
        }
        for item in self.items(id).await? {
            if item.related("appStoreVersion") == Some(version) {
                self.api.change(AppleRequest::delete(format!("{ITEMS}/{}", item.id))).await?;
            }
        }
        progress.is_withdrawn = true;
        Ok(StepReport::done().and_say("The version was not submitted, and stays as a draft."))
    }

    /// Cancels the submission, unless Apple does already.
    pub(super) async fn cancel_review(
        &self,
        progress: &AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let id = known(&progress.submission)?;
        let Some(found) = self.submission(id).await? else {
            return Ok(StepReport::after(CANCELLED_SOON));
        };
        match state(&found) {
            // The review is over just now, and the next look shows how it ended.
            "CANCELING" | "COMPLETING" | "COMPLETE" => Ok(StepReport::after(CANCELLED_SOON)),
            _ => {
                self.cancel(id).await?;
                Ok(StepReport::after(CANCELLED_SOON).and_say("The submission is being cancelled."))
            }
        }
    }

    async fn cancel(&self, submission: &str) -> Result<(), RemoteError> {
        let body = resource("reviewSubmissions", Some(submission), json!({"canceled": true}));
        self.api.change(AppleRequest::patch(format!("{SUBMISSIONS}/{submission}"), body)).await
    }

    async fn submission(
        &self,
        id: &str,
    ) -> Result<Option<Resource<ReviewSubmission>>, RemoteError> {
        let request = AppleRequest::get(format!("{SUBMISSIONS}/{id}"));
        let found: Option<One<ReviewSubmission>> = self.api.find(request).await?;
        Ok(found.map(|found| found.data))
    }

    /// The items of a submission. None if it is gone.
    async fn items(&self, submission: &str) -> Result<Vec<Resource<Anything>>, RemoteError> {
        let request = AppleRequest::get(format!("{SUBMISSIONS}/{submission}/items"))
            .with("include", "appStoreVersion")
            .with("limit", "50");
        let items: Option<Many<Anything>> = self.api.find(request).await?;
        Ok(items.map(|items| items.data).unwrap_or_default())
    }
}

fn state(submission: &Resource<ReviewSubmission>) -> &str {
    submission.attributes.state.as_deref().unwrap_or_default()
}
