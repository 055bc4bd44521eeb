//! What instances are promised of the machines of engines.

use super::{Limits, Usage, UsageDelta, usage};
use crate::{
    kinds::{hosting::engines::Engines, world::World},
    runtime::{
        store::Store,
        uses::{LimitsCount, Uses},
    },
};
use contract::{
    EngineId, Fault, Id, OrganizationId,
    quotas::{Quota, QuotaUse},
};
use std::collections::{BTreeMap, BTreeSet};
use store::Change;
use ulid::Ulid;

/// Stands for the machine of an engine: its usage is what the instances there, of all organizations together, are
/// promised.
pub fn machine(engine: Option<EngineId>) -> OrganizationId {
    OrganizationId::of(engine.map_or(Ulid(0), EngineId::unique))
}

/// Whether this stands for a machine.
pub fn is_machine(store: &Store, id: OrganizationId) -> Result<bool, Fault> {
    let engine = EngineId::of(id.unique());
    Ok(id == machine(None) || store.get::<Engines>(&engine)?.is_some())
}

/// What is promised of the machine.
pub(super) const OF_MACHINE: [Quota; 2] = [Quota::InstanceMemory, Quota::InstanceCpus];

/// The change of what is promised, where a resource took this of the machine of each of some engines, and takes this
/// of that of each of others or the same.
pub(super) fn promised(
    world: &World,
    (of_before, took): (&BTreeSet<Option<EngineId>>, &Uses),
    (of_after, takes): (&BTreeSet<Option<EngineId>>, &Uses),
    limits: LimitsCount,
) -> Change {
    let none = Uses::default();
    of_before.union(of_after).fold(Change::new(), |change, engine| {
        let took = if of_before.contains(engine) { took } else { &none };
        let takes = if of_after.contains(engine) { takes } else { &none };
        change.and(of_one(world, *engine, (took, takes), limits))
    })
}

/// The change of what is promised of the machine of an engine. Before the engine has told what its machine has,
/// nothing is refused.
fn of_one(
    world: &World,
    engine: Option<EngineId>,
    (took, takes): (&Uses, &Uses),
    limits: LimitsCount,
) -> Change {
    let (adds, takes) = (takes.only(&OF_MACHINE), took.only(&OF_MACHINE));
    if adds == takes {
        return Change::new();
    }
    let quotas = to_promise(world, engine).filter(|_| limits == LimitsCount::Yes);
    let limits = quotas.map(|quotas| Limits { tier: None, quotas });
    Change::new().merge::<Usage>(&machine(engine), UsageDelta { adds, takes, limits })
}

/// What may be promised of the machine of an engine. `None`: the engine has not told yet what its machine has.
pub fn to_promise(world: &World, engine: Option<EngineId>) -> Option<BTreeMap<Quota, u64>> {
    let about = world.host(engine).ok()?.health.status().about?;
    let overcommit = world.ports.site.overcommit;
    let times = |amount: f64, times: f64| (amount * times) as u64;
    let memory = times(about.memory as f64, overcommit.memory);
    let cpus = times(f64::from(about.cpus) * 1000.0, overcommit.cpus);
    let most = [(Quota::InstanceMemory, memory), (Quota::InstanceCpus, cpus)];
    // An engine that does not tell has none.
    Some(most.into_iter().filter(|(_, most)| *most > 0).collect())
}

/// What is promised of all machines together, and what may be.
pub fn promises(world: &World) -> Result<Vec<QuotaUse>, Fault> {
    let mut sums = OF_MACHINE.map(|quota| (quota, 0, Some(0)));
    for host in world.all_hosts()? {
        let (used, most) = (usage(&world.store, machine(host.id))?, to_promise(world, host.id));
        for (quota, sum, limit) in &mut sums {
            *sum += used.of(*quota);
            let more = most.as_ref().and_then(|most| most.get(quota).copied());
            *limit = limit.zip(more).map(|(limit, more): (u64, u64)| limit.saturating_add(more));
        }
    }
    let of =
        |(quota, used, limit): (Quota, u64, _)| QuotaUse { quota, unit: quota.unit(), used, limit };
    Ok(sums.map(of).into())
}
