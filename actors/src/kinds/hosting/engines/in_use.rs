//! How often resources need each added engine, so that none is removed before.

use crate::runtime::{
    ref_count::{RefCount, RefCountDelta},
    resource::Resource,
};
use contract::EngineId;
use std::collections::{BTreeMap, BTreeSet};
use store::Change;

/// The change of what is needed that a change of a resource makes.
pub(crate) fn counted<R: Resource>(before: Option<&R::State>, after: Option<&R::State>) -> Change {
    let (before, after) = (needs::<R>(before), needs::<R>(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    all.into_iter().fold(Change::new(), |change, engine| {
        let of = |needs: &BTreeMap<_, u64>| needs.get(engine).copied().unwrap_or_default();
        let delta = match (of(&before), of(&after)) {
            (before, after) if after > before => RefCountDelta::Add(after - before),
            (before, after) if after < before => RefCountDelta::Subtract(before - after),
            _ => return change,
        };
        change.merge::<RefCount>(&engine.to_string(), delta)
    })
}

fn needs<R: Resource>(state: Option<&R::State>) -> BTreeMap<EngineId, u64> {
    let all = state.map(|state| R::engines_elsewhere(state).into_iter().chain(R::engine(state)));
    let mut needs = BTreeMap::new();
    for engine in all.into_iter().flatten() {
        *needs.entry(engine).or_default() += 1;
    }
    needs
}
