//! Where a publication stands.

use crate::{Action, Undo, app_store, firebase, google_play, testflight};
use contract::releases::PublicationState;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a publication has come, in the terms of its store. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Progress {
    /// Nothing was done.
    #[default]
    None,
    /// An edit, an upload, and the release in its track.
    GooglePlay(Box<google_play::PlayProgress>),
    /// An upload, a version, and its review.
    AppStore(app_store::AppStoreProgress),
    /// An upload, the groups of testers, and the beta review.
    Testflight(testflight::TestflightProgress),
    /// In Firebase App Distribution.
    Firebase(firebase::FirebaseProgress),
}

impl Progress {
    /// What withdrawing the publication will do. The step that withdraws follows the same rules.
    pub fn withdrawal(&self) -> Undo {
        match self {
            Progress::None => Undo {
                action: Action::Abandon,
                text: "Nothing was sent to the store yet, and nothing will be.".into(),
            },
            Progress::GooglePlay(progress) => google_play::withdrawal(progress),
            Progress::AppStore(progress) => app_store::withdrawal(progress),
            Progress::Testflight(progress) => testflight::withdrawal(progress),
            Progress::Firebase(progress) => firebase::withdrawal(progress),
        }
    }

    /// What restoring the publication will do, after a later one was withdrawn.
    pub fn restoral(&self) -> Undo {
        match self {
            Progress::None => Undo {
                action: Action::Nothing,
                text: "This version was never sent to the store.".into(),
            },
            Progress::GooglePlay(progress) => google_play::restoral(progress),
            Progress::AppStore(progress) => app_store::restoral(progress),
            Progress::Testflight(progress) => testflight::restoral(progress),
            Progress::Firebase(progress) => firebase::restoral(progress),
        }
    }
}

/// The result of a step. `P` is the progress: that of any store, or of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced<P = Progress> {
    /// To be kept before the next step begins.
    pub progress: P,
    /// The state of the publication. `Failed` is final: the store refused the file for good.
    pub state: PublicationState,
    /// Where the publication stands in the store's own words, such as `WAITING_FOR_REVIEW`.
    pub words: Option<String>,
    /// The store's id of what was published, once known.
    pub remote_id: Option<String>,
    /// The page for users or testers, once known.
    pub url: Option<String>,
    /// What was done, one sentence each, for the history.
    pub log: Vec<String>,
    /// Why the state is `Failed`, with what to do.
    pub error: Option<String>,
    /// When the next step is due.
    pub next: NextStep,
}

impl<P> Advanced<P> {
    /// The same result with its progress in another type.
    pub(crate) fn map_progress<Q>(self, map: impl FnOnce(P) -> Q) -> Advanced<Q> {
        let Advanced { progress, state, words, remote_id, url, log, error, next } = self;
        Advanced { progress: map(progress), state, words, remote_id, url, log, error, next }
    }
}

/// When the next step is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// At once.
    Now,
    /// After a pause: the store works, or people do.
    After(Duration),
    /// Nothing is left to do until something else is wanted.
    Done,
}
