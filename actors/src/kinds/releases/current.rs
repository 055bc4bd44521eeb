//! The current release of a channel. It is moved by compare-and-set, in the transaction of the
//! release that becomes current or ceases to be: it is the truth of what users get.

use contract::{AppId, Channel, ReleaseId, Timestamp};
use serde::{Deserialize, Serialize};
use store::{Merge, Record};

/// The current release of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    /// The release.
    pub release: ReleaseId,
    /// Since when.
    pub since: Timestamp,
}

impl Current {
    /// The key of a channel's pointer.
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

/// A release that is removed takes its pointer with it.
impl Merge for Current {
    type Delta = ReleaseId;
    fn merge(old: Option<Self>, removed: &ReleaseId) -> Option<Self> {
        old.filter(|current| current.release != *removed)
    }
}
