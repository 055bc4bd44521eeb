//! Removes containers with our label that no record names, and the remains of restore checks.

use super::Recorded;
use crate::{
    kinds::{
        hosting::{backups::Backups, engines::Host, instances::Instances, names},
        world::World,
    },
    runtime::clock_watch,
};
use container_engine::{Container, Inventory, Labels};
use contract::{BackupId, InstanceId, Timestamp};
use futures_util::future::join_all;
use std::{collections::HashSet, time::Duration};

/// A younger orphan stays, because a record may yet name it. One that no record will name goes at once.
const KEEP_ORPHANS: Duration = Duration::from_secs(24 * 3600);

/// How long a container of an instance that moved may take to end.
const GRACE: Duration = Duration::from_secs(60);

/// Removes containers that no record names. It removes no volumes.
pub(super) async fn remove_orphans(
    (world, host): (&World, &Host),
    inventory: &Inventory,
    instances: &[Recorded],
    now: Timestamp,
) {
    let moved = moved_away((world, host), inventory, instances);
    stop(host, &moved).await;
    let named: HashSet<String> = instances.iter().flat_map(container_names).collect();
    // An instance that reconciles may have created containers since its record was read.
    let reconciling = instances.iter().filter(|(_, seen)| seen.pending().is_some());
    let reconciling: HashSet<String> = reconciling.map(|(id, _)| id.to_string()).collect();
    let orphans = inventory.containers.iter().filter(|container| {
        let owner = container.labels.get(names::INSTANCE);
        let of_a_backup = container.labels.contains_key(names::BACKUP);
        !owner.is_some_and(|id| reconciling.contains(id))
            && !moved.iter().any(|moved| moved.name == container.name)
            && !of_a_backup
            && !named.contains(&container.name)
    });
    // What looks old after a jump of the clock may be new.
    let is_certain = matches!(clock_watch::peek(&world.store, &world.ports.clock), Ok(None));
    let mut count = 0;
    for orphan in orphans {
        count += 1;
        let is_old = is_certain && now.since(orphan.created_at) >= KEEP_ORPHANS;
        if !is_past(orphan, instances) && !is_old {
            continue;
        }
        match host.engine.remove_container(&orphan.name).await {
            Ok(()) => tracing::warn!(name = orphan.name, "an orphaned container was removed"),
            Err(e) => {
                tracing::warn!(name = orphan.name, error = %e, "an orphaned container was not removed");
            }
        }
    }
    host.health.set_orphans(count);
}

/// The containers of instances that are placed on another engine: this one was away while they moved.
fn moved_away<'a>(
    (world, host): (&World, &Host),
    inventory: &'a Inventory,
    instances: &[Recorded],
) -> Vec<&'a Container> {
    let placed: HashSet<InstanceId> = instances.iter().map(|(id, _)| *id).collect();
    let is_elsewhere = |container: &&Container| {
        let owner = container.labels.get(names::INSTANCE).and_then(|id| id.parse().ok());
        let owner = owner.filter(|id| !placed.contains(id));
        let found = owner.and_then(|id| world.store.get::<Instances>(&id).ok().flatten());
        found.is_some_and(|found| found.engine != host.id)
    };
    inventory.containers.iter().filter(is_elsewhere).collect()
}

/// Stops them all at once. They stay, with their volumes.
async fn stop(host: &Host, moved: &[&Container]) {
    let running = moved.iter().filter(|container| container.is_running());
    let stops =
        running.map(async |container| match host.engine.stop(&container.name, GRACE).await {
            Ok(()) => tracing::warn!(
                name = container.name,
                "the container of an instance that moved to another engine was stopped"
            ),
            Err(e) => {
                tracing::warn!(name = container.name, error = %e, "a container was not stopped");
            }
        });
    join_all(stops).await;
}

/// Whether the container is of a generation that its instance gave up. Generations only rise, so no
/// record will name it again: the engine made it after the owner had turned to something else, such as
/// the end of a cancelled deployment.
fn is_past(container: &Container, instances: &[Recorded]) -> bool {
    let generation = container.labels.get(names::GENERATION).and_then(|text| text.parse().ok());
    let Some(generation) = generation else { return false };
    instances.iter().any(|(id, seen)| {
        seen.services.iter().any(|service| {
            generation <= service.generation
                && container.name == names::container(*id, service.role, generation)
        })
    })
}

/// The containers of all generations that a record names.
fn container_names((id, seen): &Recorded) -> Vec<String> {
    let of = |role| move |generation| names::container(*id, role, generation);
    seen.services.iter().flat_map(|s| s.generations().map(of(s.role))).collect()
}

/// Removes the remains of restore checks: the engine may execute a request after its deadline.
pub(super) async fn remove_restore_checks(world: &World, host: &Host, inventory: &Inventory) {
    let engine = &host.engine;
    let is_over = |id: BackupId| {
        let found = world.store.get::<Backups>(&id);
        found.is_ok_and(|found| !found.is_some_and(|backup| backup.has_check_database))
    };
    let over = |labels: &Labels| {
        labels.get(names::BACKUP).and_then(|id| id.parse().ok()).is_some_and(is_over)
    };
    let mut removed = Vec::new();
    for container in inventory.containers.iter().filter(|container| over(&container.labels)) {
        removed.push(engine.remove_container(&container.name).await);
    }
    for volume in inventory.volumes.iter().filter(|volume| over(&volume.labels)) {
        removed.push(engine.remove_volume(&volume.name).await);
    }
    for network in inventory.networks.iter().filter(|network| over(&network.labels)) {
        removed.push(engine.remove_network(&network.name).await);
    }
    for e in removed.into_iter().filter_map(Result::err) {
        tracing::warn!(error = %e, "the remains of a restore check were not removed");
    }
}
