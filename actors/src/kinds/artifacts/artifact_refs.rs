//! The releases that refer to an artifact. Releases write this record in their own transactions, so
//! that an artifact cannot be deleted while a release takes it up.

use contract::{ArtifactId, ReleaseId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Merge, Record};

/// The releases that refer to an artifact. An artifact without references has no such record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRefs {
    pub releases: BTreeSet<ReleaseId>,
}

/// A change of one reference, written by its release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArtifactRefsDelta {
    Add(ReleaseId),
    Remove(ReleaseId),
}

impl Record for ArtifactRefs {
    const TREE: &'static str = "hold";
    const SCHEMA: u16 = 1;
    type Key = ArtifactId;
    type Content = Self;
}

impl Merge for ArtifactRefs {
    type Delta = ArtifactRefsDelta;
    fn merge(old: Option<Self>, delta: &ArtifactRefsDelta) -> Option<Self> {
        let mut refs = old.unwrap_or_default();
        match delta {
            ArtifactRefsDelta::Add(release) => refs.releases.insert(*release),
            ArtifactRefsDelta::Remove(release) => refs.releases.remove(release),
        };
        Some(refs).filter(|refs| !refs.releases.is_empty())
    }
}
