//! A throw-away database that a backup is restored into to verify the backup. The database has the
//! image and the limits of the instance's database, a volume and a network of its own, and no
//! published port.

use super::effects::{DELETED, instance_of_backup};
use crate::{
    kinds::{
        hosting::{
            instances::{
                self, Instance, Instances, Service,
                database::{RunningDatabase, role},
            },
            names,
        },
        people::tenant::tenant,
        world::World,
    },
    runtime::{
        resource::Retry,
        turns::{NoTurn, Tenant, Turn, Turns},
    },
};
use container_engine::{ContainerSpec, Engine, EngineError, Health, Labels, Phase};
use contract::{BackupId, Id, backups::Backup, templates::HealthCheck};
use std::time::Duration;

/// Restore checks at the same time. Each takes the memory of a database and a network.
const AT_A_TIME: usize = 3;
/// How many of them are of one tenant, so that another one finds a turn, however long these take.
const OF_TENANT: usize = 2;
/// How long the database may take to become healthy.
const UP_WITHIN: Duration = Duration::from_secs(300);
/// The pause before a backup asks again for a turn.
const POLL: Duration = Duration::from_secs(1);
/// The pause between two readings of its health.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Consecutive healthy readings that are needed. On the first start, entry points run the database
/// once for its set-up, which may pass the health check, and then start it again.
const WELL: u32 = 6;

/// The turns of restore checks, which tenants share.
pub(crate) fn turns() -> Turns<Tenant> {
    Turns::new(AT_A_TIME, OF_TENANT)
}

/// Waits for the turn of a backup: within a tenant, the oldest comes first.
pub(super) async fn turn(
    id: BackupId,
    backup: &Backup,
    world: &World,
) -> Result<Turn<Tenant>, Retry> {
    let tenant = tenant(&world.store, backup.app_id)?;
    loop {
        match world.restore_checks.ask(tenant, id.unique().0) {
            Ok(asked) => return Ok(asked.await),
            // Too many wait.
            Err(NoTurn::OfHolder | NoTurn::OfAll) => world.ports.clock.sleep(POLL).await,
        }
    }
}

/// Brings up an empty database for a backup. The inner error says why there is none.
pub(super) async fn begin(
    id: BackupId,
    backup: &Backup,
    world: &World,
) -> Result<Result<RunningDatabase, String>, Retry> {
    let Some(found) = instance_of_backup(backup, &world.store)? else {
        return Ok(Err(DELETED.into()));
    };
    let host = world.host(found.state.engine).map_err(|e| Retry(e.to_string()))?;
    let (spec, running) = match plan(id, backup, &found.state, world) {
        Ok(planned) => planned,
        Err(why) => return Ok(Err(why)),
    };
    // An earlier attempt may have left data.
    dispose(id, backup, world).await?;
    match up(&spec, id, (host.engine.as_ref(), world)).await {
        Ok(Ok(())) => Ok(Ok(running)),
        Ok(Err(why)) => Ok(Err(why)),
        Err(EngineError::Unreachable(why) | EngineError::Exposed(why)) => Err(Retry(why)),
        Err(e) => Ok(Err(e.to_string())),
    }
}

/// Removes the container, the volume and the network. What is left at the engine of an instance that is gone, the
/// reconciler removes.
pub(super) async fn dispose(id: BackupId, backup: &Backup, world: &World) -> Result<(), Retry> {
    let found = world.store.get::<Instances>(&backup.instance_id)?;
    let engine = found.and_then(|found| found.state.engine);
    let name = names::restore_check(id);
    let gone = async {
        let engine = &world.host(engine)?.engine;
        engine.remove_container(&name).await?;
        engine.remove_volume(&name).await?;
        engine.remove_network(&name).await
    };
    gone.await.map_err(|e: EngineError| Retry(e.to_string()))
}

fn plan(
    id: BackupId,
    backup: &Backup,
    instance: &Instance,
    world: &World,
) -> Result<(ContainerSpec, RunningDatabase), String> {
    let (instance_id, name) = (backup.instance_id, names::restore_check(id));
    let service = instance.service(role(backup.kind)).ok_or("the instance has no such database")?;
    let image = service.live.image.reference.as_deref().ok_or("the database never ran")?;
    if !tells_health(service) {
        return Err(NOT_TOLD.into());
    }
    let running = RunningDatabase::of(world, instance_id, instance, service, name.clone())?;
    let spec =
        instances::container(&world.ports, instance_id, instance, service, &service.live, image)
            .map_err(|e| e.to_string())?;
    let mut mounts = spec.mounts;
    mounts.iter_mut().for_each(|mount| mount.volume.clone_from(&name));
    let labels = labels(id, world);
    let spec = ContainerSpec { network: name.clone(), name, port: None, mounts, labels, ..spec };
    Ok((spec, running))
}

/// The refusal of a database whose service does not [tell its health](tells_health).
pub(crate) const NOT_TOLD: &str = "the template gives this database no health check by a command, so nobody knows when an empty one is up";

/// Whether the engine can tell when an empty database of this service is up.
pub(crate) fn tells_health(service: &Service) -> bool {
    matches!(service.live.template().health_check, Some(HealthCheck::Command(_)))
}

fn labels(id: BackupId, world: &World) -> Labels {
    let mut labels = names::of_installation(&world.ports.site.installation);
    labels.insert(names::BACKUP.into(), id.to_string());
    labels
}

/// Creates the database and waits until it is healthy. The inner error says why it is not.
async fn up(
    spec: &ContainerSpec,
    id: BackupId,
    (engine, world): (&dyn Engine, &World),
) -> Result<Result<(), String>, EngineError> {
    let labels = labels(id, world);
    engine.ensure_image(&spec.image, world.ports.registries.login(&spec.image)).await?;
    engine.ensure_network(&spec.network, &labels).await?;
    engine.ensure_volume(&spec.name, &labels).await?;
    engine.ensure_container(spec).await?;
    engine.start(&spec.name).await?;
    let (end, mut well) = (world.ports.clock.now() + UP_WITHIN, 0);
    while world.ports.clock.now() < end {
        let Some(container) = engine.container(&spec.name).await? else {
            return Ok(Err("the database was removed while it started".into()));
        };
        match (container.phase, container.health) {
            (Phase::Running, Some(Health::Healthy)) => well += 1,
            (Phase::Exited { .. }, _) => {
                return Ok(Err("an empty database of this image does not start".into()));
            }
            _ => well = 0,
        }
        if well == WELL {
            return Ok(Ok(()));
        }
        world.ports.clock.sleep(LOOK_EVERY).await;
    }
    Ok(Err(format!("an empty database was not well within {} s", UP_WITHIN.as_secs())))
}
