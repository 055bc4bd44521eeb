//! The current release of a channel: the release that users get. The release that becomes current,
//! or is rolled back, moves this pointer by compare-and-set in its own transaction.

use contract::{AppId, Channel, ReleaseId, Timestamp};
use serde::{Deserialize, Serialize};
use store::{Merge, Record};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    pub release: ReleaseId,
    pub since: Timestamp,
}

impl Current {
    pub fn key(app: AppId, channel: &Channel) -> String {
        format!("{app}:{channel}")
    }
}

impl Record for Current {
    const TREE: &'static str = "current";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

/// The removal of a release removes the pointer to it.
impl Merge for Current {
    type Delta = ReleaseId;
    fn merge(old: Option<Self>, removed: &ReleaseId) -> Option<Self> {
        old.filter(|current| current.release != *removed)
    }
}
