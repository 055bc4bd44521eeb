//! What can be undone, and what it means for users. The steps of a withdrawal have their goal from the
//! same value as the plan that people read. Pure.

use super::{
    change::NOTHING_BEFORE,
    progress::{Lifecycle, PlayProgress},
    track::{Goal, Status},
};
use crate::{Action, Undo};

/// How the release can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undoing {
    Abandon,
    RemoveDraft,
    CancelReview,
    TakeBack,
    HaltRollout,
    HaltCompleted,
    Superseded,
    HaltedAlready,
    NothingBefore,
    Unknown,
}

pub(super) fn undoing(p: &PlayProgress) -> Undoing {
    let Some(shown) = p.shown else {
        return if p.is_superseded { Undoing::Superseded } else { Undoing::Abandon };
    };
    match (shown.status, p.lifecycle) {
        (Status::Draft, _) => Undoing::RemoveDraft,
        (Status::Halted, _) => Undoing::HaltedAlready,
        (Status::Unspecified, _) => Undoing::Unknown,
        (_, Some(Lifecycle::InReview | Lifecycle::Approved)) if !p.was_published => {
            Undoing::CancelReview
        }
        (_, Some(Lifecycle::NotSent | Lifecycle::NotApproved)) if !p.was_published => {
            Undoing::TakeBack
        }
        (Status::InProgress, _) => Undoing::HaltRollout,
        (Status::Completed, _) if p.replaced.is_some() => Undoing::HaltCompleted,
        (Status::Completed, _) => Undoing::NothingBefore,
    }
}

impl Undoing {
    /// What is to become of the release. `None`: nothing can be done, or nothing is left to do.
    pub fn goal(self) -> Option<Goal> {
        match self {
            Undoing::RemoveDraft | Undoing::CancelReview | Undoing::TakeBack => Some(Goal::Removed),
            Undoing::HaltRollout | Undoing::HaltCompleted => Some(Goal::Halted),
            Undoing::Abandon
            | Undoing::Superseded
            | Undoing::HaltedAlready
            | Undoing::NothingBefore
            | Undoing::Unknown => None,
        }
    }

    fn action(self) -> Action {
        match self {
            Undoing::Abandon => Action::Abandon,
            Undoing::RemoveDraft | Undoing::TakeBack => Action::Delete,
            Undoing::CancelReview => Action::CancelReview,
            Undoing::HaltRollout | Undoing::HaltCompleted => Action::Halt,
            Undoing::Superseded
            | Undoing::HaltedAlready
            | Undoing::NothingBefore
            | Undoing::Unknown => Action::Nothing,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Undoing::Abandon => {
                "Nobody has got this version from Google Play, and what was sent of it is discarded."
            }
            Undoing::RemoveDraft => {
                "The draft is removed from its track. Nobody has got it. If other changes of the app \
                 are in review, Google Play reviews them anew."
            }
            Undoing::CancelReview => {
                "The review is cancelled and the version removed from its track before anybody gets \
                 it. Google Play reviews other changes of the app anew."
            }
            Undoing::TakeBack => {
                "The version is removed from its track before anybody gets it. If other changes of \
                 the app are in review, Google Play reviews them anew."
            }
            Undoing::HaltRollout => {
                "Google Play gives this version to no more users. Devices that have it keep it. If \
                 other changes of the app are in review, Google Play reviews them anew."
            }
            Undoing::HaltCompleted => {
                "Google Play gives this version to no more users, and the version before it to those \
                 who have neither. Devices that have it keep it. If other changes of the app are in \
                 review, Google Play reviews them anew."
            }
            Undoing::Superseded => {
                "A later version took the place of this one, so Google Play gives it to nobody. \
                 Devices that have it keep it."
            }
            Undoing::HaltedAlready => {
                "Google Play gives this version to no more users already. Devices that have it keep \
                 it."
            }
            Undoing::NothingBefore => NOTHING_BEFORE,
            Undoing::Unknown => {
                "Google Play does not say who gets this version. Look at its track in the Play \
                 Console."
            }
        }
    }
}

/// What withdrawing the publication will do.
pub fn withdrawal(p: &PlayProgress) -> Undo {
    let undoing = undoing(p);
    let is_on_its_way = p.edit.as_ref().is_some_and(|edit| edit.changed.is_some());
    if undoing == Undoing::Abandon && (is_on_its_way || p.is_in_doubt) {
        return Undo {
            action: Action::Abandon,
            text: "What was sent is discarded. If Google Play has taken the version in just this \
                   moment, it is halted, or taken back from its review."
                .into(),
        };
    }
    Undo { action: undoing.action(), text: undoing.text().into() }
}

/// What restoring the publication will do, after a later one was withdrawn.
pub fn restoral(p: &PlayProgress) -> Undo {
    let status = p.shown.map(|shown| shown.status);
    let again = |to: String| Undo {
        action: Action::Redistribute,
        text: format!(
            "Google Play gives this version to {to} again. Devices that have a later version keep \
             that."
        ),
    };
    let nothing = |text: &str| Undo { action: Action::Nothing, text: text.into() };
    match (p.released, status) {
        (None, _) => nothing("Google Play has never given this version to users."),
        (Some(Goal::Staged(share)), None | Some(Status::Halted)) => {
            again(format!("{share} of the users"))
        }
        (Some(_), None | Some(Status::Halted)) => again("all users".into()),
        (Some(_), Some(_)) => nothing(
            "Google Play gives this version to its users by itself once the later one is halted. \
             Devices that have the later version keep that.",
        ),
    }
}
