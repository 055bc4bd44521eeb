//! How far a publication in the App Store has come, and what follows from that. Pure.

use crate::{Action, Undo, app_store_connect::upload::UploadProgress};
use contract::publishing::Percent;
use serde::{Deserialize, Serialize};

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppStoreProgress {
    pub(super) upload: UploadProgress,
    /// Apple had no objection that could be read, before anything was sent.
    pub(super) checked: bool,
    /// No version of the app was released before.
    pub(super) is_first: bool,
    /// Apple's id of the version.
    pub(super) version: Option<String>,
    /// The version has the build.
    pub(super) attached: bool,
    /// The release notes are in place.
    pub(super) noted: bool,
    /// The version says whether it is released in phases.
    pub(super) phases_set: bool,
    /// The share of the users that was wanted until users were seen to get the version.
    pub(super) share: Option<Percent>,
    /// Apple's id of the submission.
    pub(super) submission: Option<String>,
    /// The version is part of the submission, which may have been sent since.
    pub(super) listed: bool,
    /// Apple has the submission.
    pub(super) submitted: bool,
    /// The state of the version in Apple's words (`AppVersionState`), once it was submitted.
    pub(super) words: Option<String>,
    pub(super) phases: Option<Phases>,
    /// Apple was asked to cancel the submission.
    pub(super) is_cancelled: bool,
    /// The version is set to be released by hand.
    pub(super) is_manual: bool,
    /// This publication sets, or has set, the version to be released by hand, so that nobody gets it.
    pub(super) is_held: bool,
    /// The last look showed a wish for the release fulfilled by leaving the version as it is.
    pub(super) is_halted: bool,
    /// The publication was withdrawn, and nothing is left to do for it.
    pub(super) is_withdrawn: bool,
}

/// A release in phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Phases {
    pub id: String,
    /// `INACTIVE`, `ACTIVE`, `PAUSED` or `COMPLETE`.
    pub state: String,
    /// The day of the ladder, from 1 to 7.
    pub day: Option<u32>,
}

/// Where a version stands, as far as it matters for undoing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Apple has nothing whole.
    Unsent,
    /// Apple has a build, and no version has it.
    Built,
    /// A draft that was not sent for review.
    Draft,
    /// The submission may have been sent.
    Listed,
    /// Apple reviews the version.
    InReview,
    /// Apple approved the version, which waits for its release.
    Approved,
    /// Apple is releasing the version.
    Releasing,
    /// Released in phases, which go on.
    Phased,
    /// Released in phases, which are paused.
    Paused,
    /// Released to everybody.
    Released,
    /// Apple refused the version or the file, or somebody took the version back.
    Refused,
}

impl AppStoreProgress {
    pub(super) fn stage(&self) -> Stage {
        if self.upload.failure.is_some() {
            return Stage::Refused;
        }
        if !self.submitted {
            return match (self.listed || self.submission.is_some(), &self.version) {
                (true, _) => Stage::Listed,
                (_, Some(_)) => Stage::Draft,
                _ if self.upload.is_sent() => Stage::Built,
                _ => Stage::Unsent,
            };
        }
        let phase = self.phases.as_ref().map(|phases| phases.state.as_str());
        match (self.words.as_deref().unwrap_or_default(), phase) {
            ("PENDING_DEVELOPER_RELEASE", _) => Stage::Approved,
            ("ACCEPTED" | "PENDING_APPLE_RELEASE" | "PROCESSING_FOR_DISTRIBUTION", _) => {
                Stage::Releasing
            }
            // A release in phases begins with the release; a look may come between the two.
            ("READY_FOR_DISTRIBUTION", Some("ACTIVE" | "INACTIVE")) => Stage::Phased,
            ("READY_FOR_DISTRIBUTION", Some("PAUSED")) => Stage::Paused,
            ("READY_FOR_DISTRIBUTION" | "REPLACED_WITH_NEW_VERSION", _) => Stage::Released,
            (
                "REJECTED"
                | "METADATA_REJECTED"
                | "INVALID_BINARY"
                | "DEVELOPER_REJECTED"
                | "PREPARE_FOR_SUBMISSION",
                _,
            ) => Stage::Refused,
            _ => Stage::InReview,
        }
    }
}

/// What withdrawing the publication will do.
pub fn withdrawal(progress: &AppStoreProgress) -> Undo {
    let (action, text) = if progress.is_withdrawn {
        (Action::Nothing, "The publication was withdrawn already.")
    } else {
        undo(progress.stage(), progress.phases.is_some())
    };
    Undo { action, text: text.to_owned() }
}

fn undo(stage: Stage, in_phases: bool) -> (Action, &'static str) {
    match stage {
        Stage::Unsent => {
            (Action::Abandon, "The upload is given up before Apple has the whole file.")
        }
        Stage::Built => (
            Action::Abandon,
            "No version is made for the build, which stays in App Store Connect. Only internal \
             testers with access to all builds can get it.",
        ),
        Stage::Draft => (
            Action::Abandon,
            "The version stays in App Store Connect as a draft with its build. Nobody sees it, and \
             the next publication takes it over.",
        ),
        Stage::Listed => (
            Action::CancelReview,
            "If Apple has the submission already, it is cancelled; otherwise the version is taken \
             out of it. The version stays as a draft that nobody sees.",
        ),
        Stage::InReview => (
            Action::CancelReview,
            "The version is taken back from review, which takes Apple a while. It stays as a draft \
             that nobody sees.",
        ),
        Stage::Approved => (
            Action::Halt,
            "The approved version stays unreleased: from now on only somebody in App Store Connect \
             can release it. Remove it there before the next version is published.",
        ),
        Stage::Releasing if in_phases => (
            Action::Pause,
            "Apple is releasing the version, which cannot be stopped. The release in phases is \
             paused as soon as it begins.",
        ),
        Stage::Releasing => (
            Action::Nothing,
            "Apple is releasing the version to everybody, which cannot be stopped.",
        ),
        Stage::Phased => (
            Action::Pause,
            "The release in phases is paused, for at most 30 days. Users who have the version keep \
             it, and anybody can still get it by hand in the App Store. The App Store never goes \
             back to an earlier version.",
        ),
        Stage::Paused => (
            Action::Nothing,
            "The release in phases is paused already, for at most 30 days. Anybody can still get \
             the version by hand in the App Store.",
        ),
        Stage::Released => (
            Action::Nothing,
            "Everybody has the version, and the App Store never goes back to an earlier one. Publish \
             a new version, or remove the app from sale in App Store Connect.",
        ),
        Stage::Refused => {
            (Action::Nothing, "Apple did not publish the version, so that nobody has got it.")
        }
    }
}

/// What restoring the publication will do, after a later one was withdrawn.
pub fn restoral(_: &AppStoreProgress) -> Undo {
    Undo {
        action: Action::Nothing,
        text:
            "The App Store never goes back to an earlier version. Publish it again under a higher \
               version."
                .to_owned(),
    }
}
