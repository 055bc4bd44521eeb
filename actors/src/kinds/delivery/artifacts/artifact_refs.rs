//! The releases that refer to an artifact. A release writes this record in its own transaction, so
//! an artifact cannot be deleted while a release begins to refer to it.

use crate::runtime::side_record::{End, SideRecord};
use contract::ReleaseId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::Merge;

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

impl SideRecord for ArtifactRefs {
    fn end(&self) -> End {
        End::WhenUsed
    }
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
