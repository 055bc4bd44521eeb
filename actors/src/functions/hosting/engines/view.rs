//! Engines as operators see them.

use super::engines;
use crate::{
    installation::{This, engine::OwnDrained},
    kinds::{
        hosting::{
            engines::{AddedEngine, EngineStatus, Engines},
            instances::{Instance, InstanceIndex},
        },
        people::usage::{machine, usage},
        world::World,
    },
    runtime::entries::Under,
};
use contract::{
    EngineId, Fault, InstanceId,
    engines::{ContainerEngine, EngineState, PlacedInstance},
    quotas::Quota,
};
use std::{collections::BTreeMap, str::FromStr};

pub(super) fn view(
    world: &World,
    id: EngineId,
    engine: &AddedEngine,
) -> Result<ContainerEngine, Fault> {
    let status = world.host(Some(id)).map(|host| host.health.status()).unwrap_or_default();
    let instances = world.store.count(&Under::<Engines>(id))?;
    Ok(ContainerEngine {
        id: Some(id),
        name: engine.name.clone(),
        address: Some(engine.address.clone()),
        private_address: engine.private_address.clone(),
        labels: engine.labels.clone(),
        draining: engine.draining,
        certificate_expires_at: engine.keys.expires_at(),
        ..found(world, Some(id), status, instances)?
    })
}

pub(super) fn view_own(world: &World) -> Result<ContainerEngine, Fault> {
    let all = world.store.count(&InstanceIndex::All)?;
    let mut elsewhere = 0;
    for (id, _) in engines(world)? {
        elsewhere += world.store.count(&Under::<Engines>(id))?;
    }
    let draining = world.store.get::<OwnDrained>(&This)?.is_some();
    let status = world.hosts.own().health.status();
    Ok(ContainerEngine { draining, ..found(world, None, status, all.saturating_sub(elsewhere))? })
}

/// An instance and its place.
pub(super) fn placed(id: InstanceId, instance: &Instance) -> PlacedInstance {
    PlacedInstance {
        id,
        name: instance.name.clone(),
        state: instance.state,
        engine_id: instance.engine,
        moving: instance.moving.is_some(),
        last_error: instance.not_moved.clone().or_else(|| instance.last_error.clone()),
    }
}

/// What was found at an engine.
fn found(
    world: &World,
    id: Option<EngineId>,
    status: EngineStatus,
    instances: u64,
) -> Result<ContainerEngine, Fault> {
    let about = status.about.as_ref();
    let state = match (&status.unreachable, status.checked) {
        (Some(_), _) => EngineState::Unreachable,
        (None, true) => EngineState::Reachable,
        (None, false) => EngineState::Unknown,
    };
    Ok(ContainerEngine {
        id,
        name: text("own")?,
        address: None,
        private_address: text("127.0.0.1")?,
        labels: BTreeMap::new(),
        draining: false,
        state,
        since: status.unreachable.as_ref().map(|(since, _)| *since),
        instances,
        promised_memory: usage(&world.store, machine(id))?.of(Quota::InstanceMemory),
        memory: about.map(|about| about.memory),
        cpus: about.map(|about| about.cpus),
        version: about.map(|about| about.version.clone()),
        disk_free_bytes: status.disk.map(|disk| disk.free_bytes),
        certificate_expires_at: None,
    })
}

/// A text of this program, which is valid.
fn text<T: FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Fault::Internal)
}
