//! How often resources need each added engine, so that none is removed before.

use crate::runtime::{
    ref_count::{RefCount, RefCountDelta},
    resource::Resource,
};
use contract::EngineId;
use std::collections::BTreeSet;
use store::Change;

/// The change of what is needed that a change of a resource makes.
pub(crate) fn counted<R: Resource>(before: Option<&R::State>, after: Option<&R::State>) -> Change {
    let (before, after) = (needs::<R>(before), needs::<R>(after));
    let count = |change: Change, (engine, delta): (&EngineId, _)| {
        change.merge::<RefCount>(&engine.to_string(), delta)
    };
    let more = after.difference(&before).map(|engine| (engine, RefCountDelta::Add(1)));
    let fewer = before.difference(&after).map(|engine| (engine, RefCountDelta::Subtract(1)));
    more.chain(fewer).fold(Change::new(), count)
}

fn needs<R: Resource>(state: Option<&R::State>) -> BTreeSet<EngineId> {
    let Some(state) = state else { return BTreeSet::new() };
    let machines = R::machines(state).into_iter().flatten();
    machines.chain(R::engines_elsewhere(state)).collect()
}
