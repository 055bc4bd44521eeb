//! How many others are made of something: images by template versions, templates by instances. It
//! is counted in the transactions of the users, so that what is removed and who wants to use it
//! cannot miss each other.

use serde::{Deserialize, Serialize};
use store::{Merge, Record};

/// How many use it. There is none for what nobody uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Uses {
    /// The users.
    pub count: u64,
}

impl Record for Uses {
    const TREE: &'static str = "uses";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

/// What a user says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsesDelta {
    /// So many more use it.
    More(u64),
    /// So many use it no longer.
    Less(u64),
}

impl Merge for Uses {
    type Delta = UsesDelta;
    fn merge(old: Option<Self>, delta: &UsesDelta) -> Option<Self> {
        let before = old.unwrap_or_default().count;
        let count = match delta {
            UsesDelta::More(more) => before.saturating_add(*more),
            UsesDelta::Less(less) => before.saturating_sub(*less),
        };
        Some(Uses { count }).filter(|uses| uses.count > 0)
    }
}
