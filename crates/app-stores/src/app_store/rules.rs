//! The rules of the App Store: which step is next, and what Apple's states mean. Pure.
//!
//! Source: `AppVersionState` and `PhasedReleaseState` of Apple's description, and "Release a version
//! update in phases" of Apple.

use super::progress::{AppStoreProgress, Phases, Stage};
use crate::{DesiredState, app_store_connect::upload};
use contract::{
    publishing::{AppStoreOptions, AppStoreRelease, Percent},
    releases::PublicationState,
};

/// The shares of a release in phases.
const LADDER: &str = "Apple chooses the shares of a release in phases: 1, 2, 5, 10, 20, 50 and 100 % \
                      of the devices that update by themselves, one a day";

/// A step of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AppStoreStep {
    /// Bring the file to Apple.
    Upload(upload::UploadStep),
    /// Check what can be read, before anything is sent.
    Check,
    /// Find or create the version.
    EnsureVersion,
    /// Give the version its build.
    Attach,
    /// Write the release notes in one language.
    Note,
    /// Say whether the version is released in phases.
    SetPhases,
    /// Find or create the submission.
    OpenSubmission,
    /// Make the version part of the submission.
    List,
    /// Send the submission: the point of no return.
    Submit,
    /// See where the version stands, and do what is wanted there.
    Follow,
    /// Take the version out of a submission that was not sent.
    TakeOut,
    /// Leave everything as it is.
    Rest,
    /// Give up what has begun.
    Abandon,
}

/// The next step. The error says why what is wanted is impossible.
pub(super) fn next(
    progress: &AppStoreProgress,
    wanted: DesiredState,
    options: &AppStoreOptions,
) -> Result<AppStoreStep, String> {
    if progress.is_withdrawn || progress.upload.failure.is_some() {
        return Ok(AppStoreStep::Rest);
    }
    if progress.submitted {
        return Ok(AppStoreStep::Follow);
    }
    match wanted {
        DesiredState::Halted | DesiredState::Restored => Ok(AppStoreStep::Rest),
        DesiredState::Withdrawn => Ok(match progress.stage() {
            Stage::Listed => AppStoreStep::TakeOut,
            _ => AppStoreStep::Abandon,
        }),
        DesiredState::Released(Some(_)) if options.release == Some(AppStoreRelease::Manual) => Err(
            "A version that is to be released by hand waits after its approval until a share is \
                 asked for. Leave the share out until then; `phased` asks for phases."
                .into(),
        ),
        DesiredState::Released(_) => Ok(prepare(progress)),
    }
}

fn prepare(progress: &AppStoreProgress) -> AppStoreStep {
    match upload::next(&progress.upload) {
        Some(step @ upload::UploadStep::FindApp) => AppStoreStep::Upload(step),
        _ if !progress.checked => AppStoreStep::Check,
        Some(step) => AppStoreStep::Upload(step),
        None if progress.version.is_none() => AppStoreStep::EnsureVersion,
        None if !progress.attached => AppStoreStep::Attach,
        None if !progress.noted => AppStoreStep::Note,
        None if !progress.phases_set => AppStoreStep::SetPhases,
        None if progress.submission.is_none() => AppStoreStep::OpenSubmission,
        None if !progress.listed => AppStoreStep::List,
        None => AppStoreStep::Submit,
    }
}

/// What is to be done with a submitted version after a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Look again later.
    Wait,
    /// Nothing is left to do.
    Finish,
    /// Nothing is left to do: nobody new gets the version, as is wanted.
    RestHalted,
    /// Note that the version is to stay unreleased after its approval.
    MeanToHold,
    /// Leave the version unreleased after its approval.
    Hold,
    /// Release the version after its approval as the options say.
    LetGo,
    /// Release the approved version.
    Release,
    /// Change the release in phases to this state.
    Phase(&'static str),
    /// Cancel the submission.
    Cancel,
    /// Say why what is wanted is impossible.
    Refuse(String),
}

/// What is to be done with a submitted version.
pub(super) fn act(
    progress: &AppStoreProgress,
    wanted: DesiredState,
    options: &AppStoreOptions,
) -> Act {
    let stage = progress.stage();
    match wanted {
        DesiredState::Released(share) => release(progress, stage, share, options),
        DesiredState::Halted => match stage {
            Stage::InReview | Stage::Approved => hold(progress),
            Stage::Phased if progress.is_in_phase("ACTIVE") => Act::Phase("PAUSED"),
            Stage::Phased | Stage::Releasing => Act::Wait,
            Stage::Paused => Act::RestHalted,
            Stage::Released => Act::Refuse(
                "Everybody has the version, and Apple cannot halt that. Publish a new version, or \
                 remove the app from sale in App Store Connect."
                    .into(),
            ),
            _ => Act::Finish,
        },
        DesiredState::Withdrawn => match stage {
            Stage::InReview => Act::Cancel,
            Stage::Approved => hold(progress),
            Stage::Phased if progress.is_in_phase("ACTIVE") => Act::Phase("PAUSED"),
            Stage::Phased | Stage::Releasing => Act::Wait,
            Stage::Released => Act::Finish,
            _ => Act::RestHalted,
        },
        DesiredState::Restored => Act::Finish,
    }
}

fn hold(progress: &AppStoreProgress) -> Act {
    match (progress.is_manual, progress.is_held) {
        (true, _) => Act::RestHalted,
        (false, false) => Act::MeanToHold,
        (false, true) => Act::Hold,
    }
}

fn release(
    progress: &AppStoreProgress,
    stage: Stage,
    share: Option<Percent>,
    options: &AppStoreOptions,
) -> Act {
    let is_part = share.is_some_and(|share| share != Percent::ALL);
    if is_part && !matches!(stage, Stage::Refused | Stage::Released) {
        if progress.phases.is_none() && stage != Stage::Releasing {
            return Act::Refuse(format!(
                "The version was submitted without phases, so that it is for everybody or nobody. \
                 {LADDER}."
            ));
        }
        if share != progress.share && matches!(stage, Stage::Phased | Stage::Paused) {
            return Act::Refuse(format!("{LADDER}. Ask for 100 % to skip the rest."));
        }
    }
    match stage {
        Stage::Approved if is_by_hand(options) && share.is_some() => Act::Release,
        // The version was held, and would have been released since.
        Stage::Approved if progress.is_held && is_at_once(options) => Act::Release,
        Stage::InReview | Stage::Approved if progress.is_held => Act::LetGo,
        Stage::InReview | Stage::Approved | Stage::Releasing => Act::Wait,
        Stage::Phased | Stage::Paused if share == Some(Percent::ALL) => {
            if progress.is_in_phase("INACTIVE") { Act::Wait } else { Act::Phase("COMPLETE") }
        }
        Stage::Paused => Act::Phase("ACTIVE"),
        Stage::Phased => Act::Wait,
        _ => Act::Finish,
    }
}

fn is_by_hand(options: &AppStoreOptions) -> bool {
    options.release == Some(AppStoreRelease::Manual)
}

fn is_at_once(options: &AppStoreOptions) -> bool {
    matches!(options.release, None | Some(AppStoreRelease::AfterApproval))
}

impl AppStoreProgress {
    /// Whether users get the version.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.stage(), Stage::Phased | Stage::Paused | Stage::Released)
    }

    fn is_in_phase(&self, state: &str) -> bool {
        self.phases.as_ref().is_some_and(|phases| phases.state == state)
    }

    /// The state of the publication.
    pub(super) fn state(&self) -> PublicationState {
        if self.is_withdrawn || self.is_halted {
            return PublicationState::Halted;
        }
        match self.stage() {
            Stage::Unsent => PublicationState::Uploading,
            Stage::Built | Stage::Draft | Stage::Listed => PublicationState::Processing,
            Stage::InReview | Stage::Approved | Stage::Releasing => PublicationState::InReview,
            Stage::Phased | Stage::Released => PublicationState::Live,
            Stage::Paused => PublicationState::Halted,
            Stage::Refused => PublicationState::Failed,
        }
    }

    /// Where the version stands, in Apple's words.
    pub(super) fn words(&self) -> Option<String> {
        let words = self.words.clone().or_else(|| self.upload.words.clone())?;
        Some(match &self.phases {
            Some(Phases { state, day, .. }) if words == "READY_FOR_DISTRIBUTION" => match day {
                Some(day) => format!("{words}, phased release {state}, day {day} of 7"),
                None => format!("{words}, phased release {state}"),
            },
            _ => words,
        })
    }

    /// Why the publication failed, with what to do.
    pub(super) fn failure(&self) -> Option<String> {
        if let Some(failure) = &self.upload.failure {
            return Some(failure.clone());
        }
        let words = self.words.as_deref().filter(|_| self.stage() == Stage::Refused)?;
        let why = match words {
            "INVALID_BINARY" => {
                "Apple cannot use the build, and sent the reasons by e-mail: correct them, raise the \
                 build number and publish again."
            }
            "METADATA_REJECTED" => {
                "Apple rejected what the version shows in the App Store. The reasons are in App Store \
                 Connect, under App Review: correct them and publish again."
            }
            "REJECTED" => {
                "Apple rejected the version. The reasons are in App Store Connect, under App Review: \
                 correct them, raise the build number if the app changes, and publish again."
            }
            _ => "Somebody took the version back from review in App Store Connect: publish again.",
        };
        Some(format!("{why} Apple's state of the version is {words}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RELEASED: DesiredState = DesiredState::Released(None);
    const ALL: DesiredState = DesiredState::Released(Some(Percent::ALL));

    fn submitted(words: &str, phase: Option<&str>) -> AppStoreProgress {
        let phases = phase.map(|state| json!({"id": "p", "state": state, "day": 2}));
        serde_json::from_value(json!({
            "upload": {"app": {"id": "1", "name": "A", "language": "en-US"}, "isUsable": true},
            "version": "v", "submission": "s", "listed": true, "submitted": true,
            "words": words, "phases": phases, "share": 10,
        }))
        .unwrap()
    }

    #[test]
    fn wishes_for_a_submitted_version_lead_to_acts() {
        let usual = AppStoreOptions::default();
        let by_hand = AppStoreOptions { release: Some(AppStoreRelease::Manual), ..usual.clone() };
        let share = |percent: u16| DesiredState::Released(Percent::of_hundredths(percent * 100));
        let (waits, approved) = ("WAITING_FOR_REVIEW", "PENDING_DEVELOPER_RELEASE");
        let ready = "READY_FOR_DISTRIBUTION";
        let refuse = Act::Refuse(String::new());
        for (words, phase, wanted, options, expected) in [
            (waits, None, RELEASED, &usual, Act::Wait),
            (waits, None, DesiredState::Halted, &usual, Act::MeanToHold),
            (waits, None, DesiredState::Halted, &by_hand, Act::RestHalted),
            (waits, None, DesiredState::Withdrawn, &usual, Act::Cancel),
            (waits, None, share(10), &usual, refuse.clone()),
            (waits, Some("INACTIVE"), share(10), &usual, Act::Wait),
            (waits, Some("INACTIVE"), share(20), &usual, Act::Wait),
            (approved, None, RELEASED, &by_hand, Act::Wait),
            (approved, None, ALL, &by_hand, Act::Release),
            (approved, Some("INACTIVE"), share(10), &by_hand, Act::Release),
            (approved, None, DesiredState::Halted, &by_hand, Act::RestHalted),
            (approved, None, DesiredState::Withdrawn, &by_hand, Act::RestHalted),
            (approved, None, DesiredState::Withdrawn, &usual, Act::MeanToHold),
            ("PENDING_APPLE_RELEASE", None, DesiredState::Withdrawn, &usual, Act::Wait),
            (ready, None, RELEASED, &usual, Act::Finish),
            (ready, None, DesiredState::Halted, &usual, refuse.clone()),
            (ready, None, DesiredState::Withdrawn, &usual, Act::Finish),
            (ready, Some("ACTIVE"), share(10), &usual, Act::Wait),
            (ready, Some("ACTIVE"), share(20), &usual, refuse.clone()),
            (ready, Some("ACTIVE"), ALL, &usual, Act::Phase("COMPLETE")),
            (ready, Some("ACTIVE"), DesiredState::Halted, &usual, Act::Phase("PAUSED")),
            (ready, Some("ACTIVE"), DesiredState::Withdrawn, &usual, Act::Phase("PAUSED")),
            (ready, Some("ACTIVE"), DesiredState::Restored, &usual, Act::Finish),
            (ready, Some("INACTIVE"), DesiredState::Halted, &usual, Act::Wait),
            (ready, Some("PAUSED"), RELEASED, &usual, Act::Phase("ACTIVE")),
            (ready, Some("PAUSED"), ALL, &usual, Act::Phase("COMPLETE")),
            (ready, Some("PAUSED"), DesiredState::Halted, &usual, Act::RestHalted),
            (ready, Some("COMPLETE"), DesiredState::Halted, &usual, refuse),
            ("REJECTED", None, RELEASED, &usual, Act::Finish),
            ("REJECTED", None, DesiredState::Withdrawn, &usual, Act::RestHalted),
        ] {
            let mut progress = submitted(words, phase);
            progress.is_manual = is_by_hand(options);
            let act = match act(&progress, wanted, options) {
                Act::Refuse(_) => Act::Refuse(String::new()),
                act => act,
            };
            assert_eq!(act, expected, "{words} {phase:?} {wanted:?}");
        }
    }

    #[test]
    fn a_version_that_was_held_is_released_as_it_was_to_be() {
        let options = |release| AppStoreOptions { release, ..AppStoreOptions::default() };
        let held =
            |words| AppStoreProgress { is_held: true, is_manual: true, ..submitted(words, None) };
        let later = Some(AppStoreRelease::NotBefore(contract::Timestamp::from_millis(0)));
        let (waits, approved) = ("IN_REVIEW", "PENDING_DEVELOPER_RELEASE");
        assert_eq!(act(&held(waits), RELEASED, &options(None)), Act::LetGo);
        assert_eq!(act(&held(approved), RELEASED, &options(None)), Act::Release);
        assert_eq!(act(&held(approved), RELEASED, &options(later)), Act::LetGo);
        assert_eq!(act(&held(waits), DesiredState::Halted, &options(None)), Act::RestHalted);
        let meant = AppStoreProgress { is_manual: false, ..held(waits) };
        assert_eq!(act(&meant, DesiredState::Halted, &options(None)), Act::Hold);
        assert_eq!(act(&meant, RELEASED, &options(None)), Act::LetGo);
    }

    #[test]
    fn nothing_is_sent_after_a_halt_and_nothing_twice_after_a_withdrawal() {
        let options = AppStoreOptions::default();
        let mut progress = submitted("WAITING_FOR_REVIEW", None);
        progress.submitted = false;
        assert_eq!(next(&progress, DesiredState::Halted, &options), Ok(AppStoreStep::Rest));
        assert_eq!(next(&progress, DesiredState::Withdrawn, &options), Ok(AppStoreStep::TakeOut));
        progress.submission = None;
        progress.listed = false;
        assert_eq!(next(&progress, DesiredState::Withdrawn, &options), Ok(AppStoreStep::Abandon));
        progress.is_withdrawn = true;
        assert_eq!(next(&progress, DesiredState::Withdrawn, &options), Ok(AppStoreStep::Rest));
        let by_hand = AppStoreOptions { release: Some(AppStoreRelease::Manual), ..options };
        assert!(next(&AppStoreProgress::default(), ALL, &by_hand).is_err());
    }

    #[test]
    fn every_refusal_of_apple_says_what_to_do() {
        for words in ["REJECTED", "METADATA_REJECTED", "INVALID_BINARY", "DEVELOPER_REJECTED"] {
            let progress = submitted(words, None);
            assert_eq!(progress.state(), PublicationState::Failed);
            let failure = progress.failure().unwrap();
            assert!(failure.contains("publish again") && failure.contains(words), "{failure}");
        }
    }
}
