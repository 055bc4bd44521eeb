//! Which releases hold an artifact. Written in the releases' transactions, so that an artifact and
//! the release that wants it cannot miss each other.

use contract::{ArtifactId, ReleaseId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Merge, Record};

/// The releases that hold an artifact. There is none for an artifact that nobody holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// The releases.
    pub releases: BTreeSet<ReleaseId>,
}

/// What a release tells an artifact's hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HoldDelta {
    /// It holds the artifact.
    Take(ReleaseId),
    /// It holds it no longer.
    Release(ReleaseId),
}

impl Record for Hold {
    const TREE: &'static str = "hold";
    const SCHEMA: u16 = 1;
    type Key = ArtifactId;
    type Content = Self;
}

impl Merge for Hold {
    type Delta = HoldDelta;
    fn merge(old: Option<Self>, delta: &HoldDelta) -> Option<Self> {
        let mut hold = old.unwrap_or_default();
        match delta {
            HoldDelta::Take(release) => hold.releases.insert(*release),
            HoldDelta::Release(release) => hold.releases.remove(release),
        };
        Some(hold).filter(|hold| !hold.releases.is_empty())
    }
}
