//! The step after the submission: look where the version stands, and do what is wanted there.

use super::{
    AppStoreProgress,
    client::{AppStorePublisher, known},
    progress::Stage,
    rules::{self, Act},
};
use crate::{
    DesiredState, RemoteError,
    app_store_connect::{AppleRequest, FOLLOW_REVIEW, StepReport, linked},
};
use serde_json::{Value, json};
use std::time::Duration;

/// The pause between two looks at a release that Apple makes.
const FOLLOW_RELEASE: Duration = Duration::from_secs(60);
/// The pause between two looks at a release in phases, which change once a day.
const FOLLOW_PHASES: Duration = Duration::from_secs(60 * 60);

impl AppStorePublisher<'_> {
    pub(super) async fn follow(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let version = known(&progress.version)?.to_owned();
        let looked = self.look_at_version(&version).await?;
        if let (false, DesiredState::Released(share)) = (progress.has_begun(), self.order.wanted) {
            progress.share = share;
        }
        let before = progress.words.clone();
        progress.words = looked.version.app_version_state;
        // The state of the version may lag behind that of its submission.
        if before.is_none() && !progress.is_cancelled {
            progress.words =
                progress.words.take().filter(|words| words != "PREPARE_FOR_SUBMISSION");
        }
        progress.phases = looked.phases;
        progress.is_manual = looked.version.release_type.as_deref() == Some("MANUAL");
        let news = progress.words.clone().filter(|words| before.as_ref() != Some(words));
        let done = self.act(progress, &version).await?;
        Ok(match news {
            Some(words) => done.and_say(format!("The version is {words}.")),
            None => done,
        })
    }

    async fn act(
        &self,
        progress: &mut AppStoreProgress,
        version: &str,
    ) -> Result<StepReport, RemoteError> {
        match rules::act(progress, self.order.wanted, &self.order.options) {
            Act::Wait => Ok(StepReport::after(pause(progress.stage()))),
            Act::Finish => Ok(StepReport::done()),
            Act::RestHalted => {
                match self.order.wanted {
                    DesiredState::Withdrawn => progress.is_withdrawn = true,
                    _ => progress.is_halted = true,
                }
                Ok(StepReport::done())
            }
            // Noted before it is done, so that it is undone even after a crash.
            Act::MeanToHold => {
                progress.is_held = true;
                Ok(StepReport::silently())
            }
            Act::Hold => {
                let by_hand = json!({"releaseType": "MANUAL", "earliestReleaseDate": null});
                self.set_release(version, by_hand).await?;
                Ok(StepReport::saying("The version will not be released after its approval."))
            }
            Act::LetGo => {
                self.set_release(version, self.release_type()).await?;
                progress.is_held = false;
                Ok(StepReport::saying("The version will be released after its approval again."))
            }
            Act::Release => {
                let kind = "appStoreVersionReleaseRequests";
                let to = [("appStoreVersion", "appStoreVersions", version)];
                let body = linked(kind, Value::Null, &to);
                self.api.change(AppleRequest::post(format!("/v1/{kind}"), body)).await?;
                Ok(StepReport::after(FOLLOW_RELEASE)
                    .and_say("The release of the version was asked for."))
            }
            Act::Phase(state) => {
                if let Some(phases) = &progress.phases {
                    self.set_phase(phases, state).await?;
                }
                Ok(StepReport::saying(match state {
                    "PAUSED" => {
                        "The release in phases is paused, for at most 30 days. Anybody can still \
                         get the version by hand in the App Store."
                    }
                    "ACTIVE" => "The release in phases goes on.",
                    _ => "The version is released to everybody.",
                }))
            }
            Act::Cancel => {
                let done = self.cancel_review(progress).await?;
                progress.is_cancelled = true;
                Ok(done)
            }
            Act::Refuse(why) => Err(RemoteError::Refused(why)),
        }
    }
}

fn pause(stage: Stage) -> Duration {
    match stage {
        Stage::Releasing => FOLLOW_RELEASE,
        Stage::Phased | Stage::Paused => FOLLOW_PHASES,
        _ => FOLLOW_REVIEW,
    }
}
