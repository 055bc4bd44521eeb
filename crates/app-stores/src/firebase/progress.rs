//! How far a publication in Firebase App Distribution has come, and what follows from that. Pure.

use crate::{Action, Undo, Wanted};
use contract::releases::PublicationState;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// The checks found nothing that speaks against the upload.
    pub(super) is_checked: bool,
    /// The processing of the upload, such as `projects/1/apps/…/releases/-/operations/…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<String>,
    /// The release that came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) release: Option<Uploaded>,
    pub(super) has_notes: bool,
    pub(super) is_distributed: bool,
    pub(super) is_deleted: bool,
    /// Why Firebase does not take the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// What was wanted when nothing was left to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<Wanted>,
    /// How often the processing was asked about.
    pub(super) polls: u32,
}

/// A release in Firebase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Uploaded {
    /// Such as `projects/1/apps/1:1:android:abc/releases/0a1b`.
    pub name: String,
    /// The page for testers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
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
pub(super) fn next(wanted: Wanted, notes: bool, testers: bool, p: &Progress) -> Step {
    if p.refused.is_some() || p.is_deleted || p.done == Some(wanted) {
        return Step::Finish;
    }
    match (wanted, &p.release, &p.operation) {
        (Wanted::Withdrawn, Some(_), _) => Step::Delete,
        (Wanted::Withdrawn | Wanted::Released(_), None, Some(_)) => Step::Poll,
        (Wanted::Released(_), None, None) if p.is_checked => Step::Upload,
        (Wanted::Released(_), None, None) => Step::Check,
        (Wanted::Released(_), Some(_), _) if notes && !p.has_notes => Step::Notes,
        (Wanted::Released(_), Some(_), _) if testers && !p.is_distributed => Step::Distribute,
        (Wanted::Restored, Some(_), _) if testers => Step::Distribute,
        _ => Step::Finish,
    }
}

impl Progress {
    /// The state of the publication.
    pub(super) fn state(&self, wanted: Wanted) -> PublicationState {
        match wanted {
            _ if self.refused.is_some() => PublicationState::Failed,
            _ if self.is_deleted => PublicationState::Halted,
            _ if self.done == Some(wanted) && self.release.is_some() => PublicationState::Live,
            Wanted::Released(_) if self.operation.is_none() && self.release.is_none() => {
                PublicationState::Uploading
            }
            Wanted::Released(_) => PublicationState::Processing,
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
pub fn withdrawal(p: &Progress) -> Undo {
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
pub fn restoral(p: &Progress) -> Undo {
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

    fn uploaded() -> Progress {
        let release = Uploaded { name: "projects/1/apps/a/releases/r".into(), url: None };
        Progress { is_checked: true, release: Some(release), ..Progress::default() }
    }

    #[test]
    fn each_step_follows_from_what_is_there() {
        let released = Wanted::Released(Some(Percent::ALL));
        let sent =
            Progress { is_checked: true, operation: Some("o".into()), ..Progress::default() };
        let noted = Progress { has_notes: true, ..uploaded() };
        let given = Progress { is_distributed: true, ..noted.clone() };
        let deleted = Progress { is_deleted: true, ..uploaded() };
        let table = [
            (released, Progress::default(), Step::Check),
            (released, Progress { is_checked: true, ..Progress::default() }, Step::Upload),
            (released, sent.clone(), Step::Poll),
            (released, uploaded(), Step::Notes),
            (released, noted, Step::Distribute),
            (released, given.clone(), Step::Finish),
            (Wanted::Restored, given.clone(), Step::Distribute),
            (
                Wanted::Restored,
                Progress { done: Some(Wanted::Restored), ..given.clone() },
                Step::Finish,
            ),
            (Wanted::Restored, Progress::default(), Step::Finish),
            (Wanted::Withdrawn, given, Step::Delete),
            (Wanted::Withdrawn, sent, Step::Poll),
            (Wanted::Withdrawn, Progress::default(), Step::Finish),
            (Wanted::Withdrawn, deleted, Step::Finish),
        ];
        for (wanted, progress, step) in table {
            assert_eq!(next(wanted, true, true, &progress), step, "{wanted:?} {progress:?}");
        }
        assert_eq!(next(released, false, false, &uploaded()), Step::Finish);
    }

    /// The plan says what the step does.
    #[test]
    fn plans_and_steps_agree() {
        let deleted = Progress { is_deleted: true, ..uploaded() };
        let sent = Progress { operation: Some("o".into()), ..Progress::default() };
        for progress in [Progress::default(), sent, uploaded(), deleted] {
            let is_deleting =
                matches!(next(Wanted::Withdrawn, true, true, &progress), Step::Delete | Step::Poll);
            let plan = withdrawal(&progress).action;
            assert_eq!(is_deleting, plan == Action::Delete, "{progress:?} {plan:?}");
            let is_giving = next(Wanted::Restored, true, true, &progress) == Step::Distribute;
            let plan = restoral(&progress).action;
            assert_eq!(is_giving, plan == Action::Redistribute, "{progress:?} {plan:?}");
        }
    }
}
