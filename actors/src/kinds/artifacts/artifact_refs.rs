//! The releases that refer to an artifact. A release writes this record in its own transaction, so
//! an artifact cannot be deleted while a release begins to refer to it.

use contract::{ArtifactId, ReleaseId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Merge, Record};

/// An artifact without references has no such record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRefs {
    pub releases: BTreeSet<ReleaseId>,
}

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
