//! Reference counts: how many records refer to an object. Whoever begins or ends to refer to it changes the
//! count in the same transaction, so that the object cannot be removed while another record begins to refer
//! to it.

use super::side_record::{End, SideRecord};
use serde::{Deserialize, Serialize};
use store::Merge;

/// How many records use an object. An unused object has no count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RefCount {
    pub count: u64,
}

impl SideRecord for RefCount {
    fn end(&self) -> End {
        End::WhenUsed
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RefCountDelta {
    Add(u64),
    Subtract(u64),
}

impl Merge for RefCount {
    type Delta = RefCountDelta;
    fn merge(old: Option<Self>, delta: &RefCountDelta) -> Option<Self> {
        let before = old.unwrap_or_default().count;
        let count = match delta {
            RefCountDelta::Add(n) => before.saturating_add(*n),
            RefCountDelta::Subtract(n) => before.saturating_sub(*n),
        };
        Some(RefCount { count }).filter(|refs| refs.count > 0)
    }
}
