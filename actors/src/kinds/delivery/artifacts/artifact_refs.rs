//! The releases that refer to an artifact. A release writes this record in its own transaction, so
//! an artifact cannot be deleted while a release begins to refer to it.

use crate::runtime::side_record::{End, SideRecord};
use contract::ReleaseId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::Merge;

/// How many releases may hold an artifact. Each of them writes the whole record.
const MOST: usize = 100;

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

    fn refuses(old: Option<&Self>, delta: &ArtifactRefsDelta) -> Option<String> {
        let held = old.map_or(0, |refs| refs.releases.len());
        let is_more = matches!(delta, ArtifactRefsDelta::Add(_)) && held >= MOST;
        is_more.then(|| {
            format!(
                "an artifact is in {MOST} releases, which is the most; delete one of its releases with svc_deleteRelease, or upload it again"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    #[test]
    fn a_hundred_releases_hold_an_artifact_and_each_can_let_it_go() {
        let add = |n| ArtifactRefsDelta::Add(Id::of(Ulid(n)));
        let hold = |refs, n| {
            assert_eq!(ArtifactRefs::refuses(Option::as_ref(&refs), &add(n)), None);
            ArtifactRefs::merge(refs, &add(n))
        };
        let full = (0..100).fold(None, hold);
        assert!(ArtifactRefs::refuses(full.as_ref(), &add(100)).is_some());
        let remove = ArtifactRefsDelta::Remove(Id::of(Ulid(7)));
        assert_eq!(ArtifactRefs::refuses(full.as_ref(), &remove), None);
        hold(ArtifactRefs::merge(full, &remove), 100);
    }
}
