//! How far a publication in Firebase App Distribution has come, and what follows from that. Pure.

use crate::{Action, DesiredState, Undo};
use contract::releases::PublicationState;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FirebaseProgress {
    /// The checks found nothing that speaks against the upload.
    pub(super) is_checked: bool,
    /// The processing of the upload, such as `projects/1/apps/…/releases/-/operations/…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<String>,
    /// The release that came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) release: Option<FirebaseRelease>,
    pub(super) has_notes: bool,
    pub(super) is_distributed: bool,
    pub(super) is_deleted: bool,
    /// Why Firebase does not take the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// What was wanted when nothing was left to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<DesiredState>,
    /// How often the processing was asked about.
    pub(super) polls: u32,
}

/// What Firebase made of the uploaded file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FirebaseRelease {
    /// Such as `projects/1/apps/1:1:android:abc/releases/0a1b`.
    pub name: String,
    /// The page for testers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirebaseStep {
    /// Looks whether the app, the groups and the link to Google Play are there.
    Check,
    /// Sends the file.
    Upload,
    /// Asks whether the file is processed.
    Poll,
    /// Sets the release notes.
    Notes,
    /// Gives the release to its testers. Firebase tells nobody who has access, so this may be done
    /// twice; the second time changes nothing.
    Distribute,
    /// Deletes the release.
    Delete,
    /// Nothing is left to be done.
    Finish,
}

/// The next step. `notes` and `testers` tell whether there are any.
pub(super) fn next(
    wanted: DesiredState,
    notes: bool,
    testers: bool,
    p: &FirebaseProgress,
) -> FirebaseStep {
    if p.refused.is_some() || p.is_deleted || p.done == Some(wanted) {
        return FirebaseStep::Finish;
    }
    match (wanted, &p.release, &p.operation) {
        (DesiredState::Withdrawn, Some(_), _) => FirebaseStep::Delete,
        (DesiredState::Withdrawn | DesiredState::Released(_), None, Some(_)) => FirebaseStep::Poll,
        (DesiredState::Released(_), None, None) if p.is_checked => FirebaseStep::Upload,
        (DesiredState::Released(_), None, None) => FirebaseStep::Check,
        (DesiredState::Released(_), Some(_), _) if notes && !p.has_notes => FirebaseStep::Notes,
        (DesiredState::Released(_), Some(_), _) if testers && !p.is_distributed => {
            FirebaseStep::Distribute
        }
        (DesiredState::Restored, Some(_), _) if testers => FirebaseStep::Distribute,
        _ => FirebaseStep::Finish,
    }
}

impl FirebaseProgress {
    /// The state of the publication.
    pub(super) fn state(&self, wanted: DesiredState) -> PublicationState {
        match wanted {
            _ if self.refused.is_some() => PublicationState::Failed,
            _ if self.is_deleted => PublicationState::Halted,
            _ if self.done == Some(wanted) && self.release.is_some() => PublicationState::Live,
            DesiredState::Released(_) if self.operation.is_none() && self.release.is_none() => {
                PublicationState::Uploading
            }
            DesiredState::Released(_) => PublicationState::Processing,
            _ if self.release.is_some() => PublicationState::Live,
            _ => PublicationState::Halted,
        }
    }

    /// The pause before the processing is asked about again: 2 to 30 seconds.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_secs(2 << self.polls.min(4)).min(Duration::from_secs(30))
    }
}

/// What withdrawing the publication will do.
pub fn withdrawal(p: &FirebaseProgress) -> Undo {
    let (action, text) = match (&p.release, &p.operation) {
        _ if p.is_deleted => (Action::Nothing, "The version is deleted from Firebase already."),
        (Some(_), _) => (
            Action::Delete,
            "The version is deleted from Firebase App Distribution, so no tester can install it any \
             more. Devices that have it keep it.",
        ),
        (None, Some(_)) if p.refused.is_none() => (
            Action::Delete,
            "Firebase still processes the file. The version is deleted as soon as that is done, and \
             no tester gets it.",
        ),
        _ if p.is_checked => (
            Action::Abandon,
            "No tester has got this version, and nobody will. If the file was being sent, Firebase \
             may keep it without testers.",
        ),
        _ => (Action::Abandon, "Nothing was sent to Firebase yet, and nothing will be."),
    };
    Undo { action, text: text.into() }
}

/// What restoring the publication will do, after a later one was withdrawn.
pub fn restoral(p: &FirebaseProgress) -> Undo {
    let (action, text) = match &p.release {
        _ if p.is_deleted => {
            (Action::Nothing, "This version was deleted from Firebase and cannot be given again.")
        }
        None => (Action::Nothing, "This version was never given to testers in Firebase."),
        Some(_) => (
            Action::Redistribute,
            "Firebase App Distribution gives this version to its testers again. Devices that have a \
             later version keep that until its tester installs this one.",
        ),
    };
    Undo { action, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::publishing::Percent;

    fn uploaded() -> FirebaseProgress {
        let release = FirebaseRelease { name: "projects/1/apps/a/releases/r".into(), url: None };
        FirebaseProgress { is_checked: true, release: Some(release), ..FirebaseProgress::default() }
    }

    #[test]
    fn each_step_follows_from_what_is_there() {
        let released = DesiredState::Released(Some(Percent::ALL));
        let sent = FirebaseProgress {
            is_checked: true,
            operation: Some("o".into()),
            ..FirebaseProgress::default()
        };
        let noted = FirebaseProgress { has_notes: true, ..uploaded() };
        let given = FirebaseProgress { is_distributed: true, ..noted.clone() };
        let deleted = FirebaseProgress { is_deleted: true, ..uploaded() };
        let table = [
            (released, FirebaseProgress::default(), FirebaseStep::Check),
            (
                released,
                FirebaseProgress { is_checked: true, ..FirebaseProgress::default() },
                FirebaseStep::Upload,
            ),
            (released, sent.clone(), FirebaseStep::Poll),
            (released, uploaded(), FirebaseStep::Notes),
            (released, noted, FirebaseStep::Distribute),
            (released, given.clone(), FirebaseStep::Finish),
            (DesiredState::Restored, given.clone(), FirebaseStep::Distribute),
            (
                DesiredState::Restored,
                FirebaseProgress { done: Some(DesiredState::Restored), ..given.clone() },
                FirebaseStep::Finish,
            ),
            (DesiredState::Restored, FirebaseProgress::default(), FirebaseStep::Finish),
            (DesiredState::Withdrawn, given, FirebaseStep::Delete),
            (DesiredState::Withdrawn, sent, FirebaseStep::Poll),
            (DesiredState::Withdrawn, FirebaseProgress::default(), FirebaseStep::Finish),
            (DesiredState::Withdrawn, deleted, FirebaseStep::Finish),
        ];
        for (wanted, progress, step) in table {
            assert_eq!(next(wanted, true, true, &progress), step, "{wanted:?} {progress:?}");
        }
        assert_eq!(next(released, false, false, &uploaded()), FirebaseStep::Finish);
    }

    /// The plan says what the step does.
    #[test]
    fn plans_and_steps_agree() {
        let deleted = FirebaseProgress { is_deleted: true, ..uploaded() };
        let sent = FirebaseProgress { operation: Some("o".into()), ..FirebaseProgress::default() };
        for progress in [FirebaseProgress::default(), sent, uploaded(), deleted] {
            let is_deleting = matches!(
                next(DesiredState::Withdrawn, true, true, &progress),
                FirebaseStep::Delete | FirebaseStep::Poll
            );
            let plan = withdrawal(&progress).action;
            assert_eq!(is_deleting, plan == Action::Delete, "{progress:?} {plan:?}");
            let is_giving =
                next(DesiredState::Restored, true, true, &progress) == FirebaseStep::Distribute;
            let plan = restoral(&progress).action;
            assert_eq!(is_giving, plan == Action::Redistribute, "{progress:?} {plan:?}");
        }
    }
}
