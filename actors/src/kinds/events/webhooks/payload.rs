//! The payloads of events: one for all deliveries of an event, for as long as there is one.

use crate::runtime::side_record::{End, SideRecord};
use serde::{Deserialize, Serialize};
use store::Merge;

/// The body of the requests about an event, and how many deliveries use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Payload {
    pub text: String,
    uses: u64,
}

impl Payload {
    /// How many deliveries use it.
    pub fn uses(&self) -> u64 {
        self.uses
    }
}

impl SideRecord for Payload {
    fn end(&self) -> End {
        End::WhenUsed
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadDelta {
    /// A delivery begins to use this payload.
    Use(String),
    /// A delivery that used it is gone.
    Leave,
}

impl Merge for Payload {
    type Delta = PayloadDelta;

    fn merge(old: Option<Self>, delta: &PayloadDelta) -> Option<Self> {
        match (old, delta) {
            (None, PayloadDelta::Use(text)) => Some(Payload { text: text.clone(), uses: 1 }),
            (Some(old), PayloadDelta::Use(_)) => Some(Payload { uses: old.uses + 1, ..old }),
            (None, PayloadDelta::Leave) => None,
            (Some(old), PayloadDelta::Leave) => {
                let left = Payload { uses: old.uses.saturating_sub(1), ..old };
                (left.uses > 0).then_some(left)
            }
        }
    }
}
