//! Places an instance: reads what is known of the engines, and chooses one, or judges one.

use crate::{
    installation::{This, engine::OwnDrained},
    kinds::{
        hosting::{
            engines::{
                Engines, Host,
                placement::{Candidate, Share, place},
            },
            instances::{Instance, Instances, container_spec::UNMEASURED_BYTES},
        },
        people::usage,
        world::World,
    },
    runtime::resource::Resource,
};
use contract::{EngineId, Fault, quotas::Quota, text::Slug};
use std::collections::BTreeMap;
use store::Snapshot;

/// The engine that a new instance is placed on, as it was read. `None`: that of the settings.
pub(in crate::functions::hosting) fn placed(
    world: &World,
    instance: &Instance,
    labels: &BTreeMap<Slug, Slug>,
) -> Result<Option<(EngineId, Snapshot<Engines>)>, Fault> {
    let uses = Instances::uses(instance);
    let (mut candidates, mut known) = (Vec::new(), BTreeMap::new());
    for host in world.all_hosts()? {
        let seen = host.id.map(|id| world.store.get::<Engines>(&id)).transpose()?.flatten();
        candidates.push(candidate(world, &host, seen.as_ref())?);
        known.extend(host.id.zip(seen));
    }
    let placed = place(&candidates, labels, share(|quota| uses.of(quota)))?;
    Ok(placed.and_then(|id| known.remove_entry(&id)))
}

/// Refuses an engine that cannot take an instance that exists.
pub(super) fn check(
    world: &World,
    host: &Host,
    added: Option<&Snapshot<Engines>>,
    instance: &Instance,
) -> Result<(), Fault> {
    let (candidate, uses) = (candidate(world, host, added)?, Instances::uses(instance));
    if candidate.draining {
        return Err(Fault::NotNow("this engine takes no instances: it is being drained".into()));
    }
    if !candidate.is_reachable || candidate.most.is_none() {
        return Err(Fault::Unavailable("this container engine"));
    }
    // One that was on its way there has its room already.
    let has_room = Instances::machines(instance).contains(&host.id);
    if !has_room && candidate.left(share(|quota| uses.of(quota))).is_none() {
        return Err(Fault::NotNow(
            "this engine has promised too much of its memory or processors already; choose another one".into(),
        ));
    }
    host.health.check_room(instance.disk_bytes.unwrap_or(UNMEASURED_BYTES))
}

fn candidate(
    world: &World,
    host: &Host,
    added: Option<&Snapshot<Engines>>,
) -> Result<Candidate, Fault> {
    let promised = usage::usage(&world.store, usage::machine(host.id))?;
    let most = usage::to_promise(world, host.id);
    let most_of = |quota| most.as_ref().and_then(|most| most.get(&quota).copied());
    Ok(Candidate {
        id: host.id,
        draining: match added {
            Some(engine) => engine.draining,
            None => world.store.get::<OwnDrained>(&This)?.is_some(),
        },
        labels: added.map(|engine| engine.labels.clone()).unwrap_or_default(),
        is_reachable: !host.health.is_unreachable(),
        has_room: host.health.check_room(UNMEASURED_BYTES).is_ok(),
        promised: share(|quota| promised.of(quota)),
        // An engine that does not tell what it has is refused nothing.
        most: most.as_ref().map(|_| share(|quota| most_of(quota).unwrap_or(u64::MAX))),
    })
}

fn share(of: impl Fn(Quota) -> u64) -> Share {
    Share { memory: of(Quota::InstanceMemory), cpu_millis: of(Quota::InstanceCpus) }
}
