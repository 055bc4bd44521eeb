//! The current release of a channel: the release that users get. The release that becomes current,
//! or is rolled back, moves this pointer by compare-and-set in its own transaction.

use crate::runtime::side_record::{End, SideRecord};
use contract::{AppId, Channel, ReleaseId, Timestamp};
use serde::{Deserialize, Serialize};
use store::Merge;

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

impl SideRecord for Current {
    fn end(&self) -> End {
        End::With(self.release.to_string())
    }
}

/// The removal of a release removes the pointer to it.
impl Merge for Current {
    type Delta = ReleaseId;
    fn merge(old: Option<Self>, removed: &ReleaseId) -> Option<Self> {
        old.filter(|current| current.release != *removed)
    }
}
