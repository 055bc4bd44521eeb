//! How far a publication in Google Play has come, and what follows from that. Pure.

use super::{
    track::{Goal, Shown, Status, TrackRelease},
    undo::undoing,
};
use crate::DesiredState;
use contract::{publishing::Percent, releases::PublicationState};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlayProgress {
    /// The open edit: the set of changes that a commit makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edit: Option<Edit>,
    /// An edit with a change ended, and it may have been committed. The track shows it.
    #[serde(rename = "isUnsettled")]
    pub(super) is_in_doubt: bool,
    /// What was wanted when nothing was left to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<Wish>,
    /// The release as its track showed it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shown: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lifecycle: Option<Lifecycle>,
    /// Users could get the release at some time.
    pub(super) was_published: bool,
    /// The track had the release, and has later ones in its place.
    pub(super) is_superseded: bool,
    /// What users got when they last got the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) released: Option<Goal>,
    /// The completed release that this one took the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<TrackRelease>,
    /// How often an edit was ended by others since the last commit.
    pub(super) restarts: u32,
    /// How often the state was asked for since it changed.
    pub(super) polls: u32,
}

/// An open edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Edit {
    pub id: String,
    /// What the checks found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<EditFindings>,
    /// The resumable upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<ResumableUpload>,
    /// The change of the track that the edit holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Goal>,
}

/// What the checks found in an edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EditFindings {
    /// Google has these bytes.
    pub has_file: bool,
    /// The default language of the app.
    pub language: Option<String>,
    /// The completed release that ours takes the place of.
    pub replaces: Option<TrackRelease>,
    /// Our release in the track.
    pub shown: Option<Shown>,
}

/// An upload in parts, which goes on after a failure where Google's bytes end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResumableUpload {
    pub session: UploadAddress,
    /// How many bytes Google has.
    pub sent: u64,
}

/// The address of an upload. Who knows it can write to it, so its `Debug` output is masked.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UploadAddress(pub String);

impl fmt::Debug for UploadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

/// What the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wish {
    pub wanted: DesiredState,
    /// The option of this name.
    pub draft: bool,
}

/// Where Google's review has come. Source: `ReleaseSummary` of the Google Play Developer API v3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Lifecycle {
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_DRAFT")]
    Draft,
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_NOT_SENT_FOR_REVIEW")]
    NotSent,
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_IN_REVIEW")]
    InReview,
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_APPROVED_NOT_PUBLISHED")]
    Approved,
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_NOT_APPROVED")]
    NotApproved,
    #[serde(rename = "RELEASE_LIFECYCLE_STATE_PUBLISHED")]
    Published,
    #[serde(other, rename = "RELEASE_LIFECYCLE_STATE_UNSPECIFIED")]
    Unspecified,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayStep {
    /// Opens an edit.
    Open,
    /// Reads everything that the edit shows of the app.
    Check,
    /// Opens a resumable upload.
    Begin,
    /// Sends the next chunk.
    Send,
    /// Changes the track in the edit, and lets Google check the edit.
    Change(Goal),
    /// Makes the changes of the edit. There is no way back.
    Commit(Goal),
    /// Discards the edit.
    Close,
    /// Nothing is to be asked of Google.
    Finish,
    /// Asks how the review goes and what the console changed.
    Follow,
}

/// The next step for what is wanted.
pub(super) fn next(wish: Wish, p: &PlayProgress) -> PlayStep {
    let Some(edit) = &p.edit else {
        return match p.done {
            _ if p.is_in_doubt => PlayStep::Open,
            Some(done) if done == wish => PlayStep::Follow,
            _ if needs_nothing(wish.wanted, p) => PlayStep::Finish,
            _ => PlayStep::Open,
        };
    };
    let Some(found) = &edit.found else {
        return if !p.is_in_doubt && needs_nothing(wish.wanted, p) {
            PlayStep::Close
        } else {
            PlayStep::Check
        };
    };
    let Some(goal) = goal(wish, p) else { return PlayStep::Close };
    let needs_file = goal != Goal::Removed && !found.has_file;
    match &edit.upload {
        None if needs_file => PlayStep::Begin,
        Some(_) if needs_file => PlayStep::Send,
        _ if edit.changed != Some(goal) => PlayStep::Change(goal),
        _ => PlayStep::Commit(goal),
    }
}

/// Whether nothing can be in the store that would have to change.
fn needs_nothing(wanted: DesiredState, p: &PlayProgress) -> bool {
    match wanted {
        DesiredState::Released(_) => false,
        DesiredState::Halted | DesiredState::Withdrawn => p.shown.is_none(),
        DesiredState::Restored => p.released.is_none(),
    }
}

/// What is to become of the release. `None`: the track shows what is wanted.
pub(super) fn goal(wish: Wish, p: &PlayProgress) -> Option<Goal> {
    let status = p.shown.map(|shown| shown.status);
    let goal = match wish.wanted {
        DesiredState::Released(_) if wish.draft => Goal::Draft,
        DesiredState::Released(None | Some(Percent::ALL)) => Goal::Completed,
        DesiredState::Released(Some(share)) => Goal::Staged(share),
        DesiredState::Halted => match status {
            Some(Status::InProgress | Status::Completed) => Goal::Halted,
            _ => return None,
        },
        DesiredState::Withdrawn => undoing(p).goal()?,
        DesiredState::Restored => match status {
            None | Some(Status::Halted) => p.released?,
            Some(_) => return None,
        },
    };
    let is_reached = p.shown.is_some_and(|shown| shown.is(goal));
    (!is_reached).then_some(goal)
}

/// Whether the change must not wait until other changes of the app are reviewed.
pub(super) fn is_urgent(goal: Goal) -> bool {
    matches!(goal, Goal::Halted | Goal::Removed)
}

impl PlayProgress {
    /// Takes what the track shows.
    pub(super) fn show(&mut self, shown: Option<Shown>) {
        self.is_superseded = shown.is_none() && (self.is_superseded || self.shown.is_some());
        self.shown = shown;
        match shown.map(|shown| (shown.status, shown.share)) {
            Some((Status::Completed, _)) => self.released = Some(Goal::Completed),
            Some((Status::InProgress, Some(share))) => self.released = Some(Goal::Staged(share)),
            _ => {}
        }
    }

    /// Takes what the checks found. They end a doubt.
    pub(super) fn checked(&mut self, found: EditFindings) {
        self.show(found.shown);
        self.is_in_doubt = false;
        if let Some(edit) = &mut self.edit {
            edit.found = Some(found);
        }
    }

    /// Google has the bytes.
    pub(super) fn has_file(&mut self) {
        if let Some(edit) = &mut self.edit {
            edit.upload = None;
            if let Some(found) = &mut edit.found {
                found.has_file = true;
            }
        }
    }

    /// The upload is gone. The checks tell whether the bytes had arrived.
    pub(super) fn upload_is_gone(&mut self) {
        if let Some(edit) = &mut self.edit {
            edit.upload = None;
            edit.found = None;
        }
    }

    /// The edit is gone, and what it held is lost unless it was committed.
    pub(super) fn edit_is_gone(&mut self) {
        if let Some(Edit { changed: Some(_), found, .. }) = self.edit.take() {
            self.is_in_doubt = true;
            // If it was committed, the track does not show any more what ours took the place of.
            self.replaced = found.and_then(|found| found.replaces).or(self.replaced.take());
        }
        self.restarts += 1;
    }

    /// The change of the edit is made.
    pub(super) fn committed(&mut self, goal: Goal, wish: Wish) {
        let replaces = self.edit.take().and_then(|edit| edit.found).and_then(|it| it.replaces);
        self.replaced = replaces.or(self.replaced.take());
        let was = self.shown.and_then(|shown| shown.share);
        self.show(match goal {
            Goal::Draft => Some(Shown { status: Status::Draft, share: None }),
            Goal::Staged(share) => Some(Shown { status: Status::InProgress, share: Some(share) }),
            Goal::Completed => Some(Shown { status: Status::Completed, share: None }),
            Goal::Halted => Some(Shown { status: Status::Halted, share: was }),
            Goal::Removed => None,
        });
        self.is_superseded = false;
        // The review of the change begins.
        self.lifecycle = None;
        self.finished(wish);
    }

    /// Nothing is left to be done.
    pub(super) fn finished(&mut self, wish: Wish) {
        self.edit = None;
        self.done = Some(wish);
        self.restarts = 0;
        self.polls = 0;
    }

    /// Takes where the review has come. `None`: the list of the track does not have the version.
    pub(super) fn listed(&mut self, lifecycle: Option<Lifecycle>) {
        self.polls = if lifecycle == self.lifecycle { self.polls.saturating_add(1) } else { 0 };
        self.was_published |= lifecycle == Some(Lifecycle::Published);
        self.lifecycle = lifecycle;
    }

    /// The state of the publication.
    pub(super) fn state(&self, wanted: DesiredState) -> PublicationState {
        let Some(shown) = self.shown else {
            let has_file = |edit: &Edit| edit.found.as_ref().is_some_and(|found| found.has_file);
            return match (wanted, &self.edit) {
                _ if self.is_superseded => PublicationState::Live,
                (DesiredState::Released(_), Some(edit)) if has_file(edit) => {
                    PublicationState::Processing
                }
                (DesiredState::Released(_), _) => PublicationState::Uploading,
                _ => PublicationState::Halted,
            };
        };
        match (shown.status, self.lifecycle) {
            (Status::Halted, _) => PublicationState::Halted,
            (Status::Draft | Status::Unspecified, _) => PublicationState::Processing,
            (_, Some(Lifecycle::Published)) => PublicationState::Live,
            (_, Some(Lifecycle::NotApproved)) => PublicationState::Failed,
            (_, Some(Lifecycle::InReview | Lifecycle::Approved)) => PublicationState::InReview,
            (_, Some(Lifecycle::NotSent)) => PublicationState::Processing,
            _ if self.was_published => PublicationState::Live,
            _ => PublicationState::Processing,
        }
    }

    /// Where the publication stands in Google's words.
    pub(super) fn words(&self) -> Option<String> {
        let status = || {
            let shown = self.shown?;
            let status = match shown.status {
                Status::Draft => "draft",
                Status::InProgress => "inProgress",
                Status::Halted => "halted",
                Status::Completed => "completed",
                Status::Unspecified => "statusUnspecified",
            };
            Some(match shown.share {
                Some(share) => format!("{status} {share}"),
                None => status.to_owned(),
            })
        };
        match self.lifecycle {
            Some(Lifecycle::NotSent) => Some("NOT_SENT_FOR_REVIEW".into()),
            Some(Lifecycle::InReview) => Some("IN_REVIEW".into()),
            Some(Lifecycle::Approved) => Some("APPROVED_NOT_PUBLISHED".into()),
            Some(Lifecycle::NotApproved) => Some("NOT_APPROVED".into()),
            Some(Lifecycle::Draft | Lifecycle::Published | Lifecycle::Unspecified) | None => {
                status()
            }
        }
    }

    /// The pause before the state is asked for again. `None`: nothing changes by itself any more.
    pub(super) fn pause(&self) -> Option<Duration> {
        /// Somebody may change it in the console at any time.
        const CONSOLE: Duration = Duration::from_secs(30 * 60);
        let status = self.shown?.status;
        match (status, self.lifecycle) {
            (Status::Halted, _) | (_, Some(Lifecycle::NotApproved)) => None,
            (Status::Completed, Some(Lifecycle::Published)) => None,
            (Status::Draft, _) | (_, Some(Lifecycle::Published | Lifecycle::NotSent)) => {
                Some(CONSOLE)
            }
            _ => Some(growing(self.polls)),
        }
    }
}

/// 30 seconds, growing to ten minutes.
fn growing(polls: u32) -> Duration {
    Duration::from_secs(30 * 2u64.saturating_pow(polls.min(5))).min(Duration::from_secs(600))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
