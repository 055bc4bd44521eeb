//! A database that a backup is put into to see whether it can be: of the same image and with the
//! same limits as the one that it is of, with a volume of its own, alone on its network, published
//! nowhere.

use super::effects::{DELETED, Running, instance_of, role};
use crate::{
    kinds::instances::{self, Instance, Service, names},
    runtime::resource::Retry,
    world::World,
};
use container_engine::{ContainerSpec, EngineError, Health, Labels, Phase};
use contract::{BackupId, backups::Backup, templates::HealthCheck};
use std::time::Duration;

/// How long the database may take until it is well.
const UP_WITHIN: Duration = Duration::from_secs(300);
/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often in a row it must be well. On their first start, entry points run the database once for
/// themselves, which may answer its health check too, and then start it anew.
const WELL: u32 = 6;

/// Brings up an empty database for a backup; or why there can be none.
pub(super) async fn begin(
    id: BackupId,
    backup: &Backup,
    world: &World,
) -> Result<Result<Running, String>, Retry> {
    let Some(found) = instance_of(backup, &world.store)? else { return Ok(Err(DELETED.into())) };
    let (spec, running) = match plan(id, backup, &found.state, world) {
        Ok(planned) => planned,
        Err(why) => return Ok(Err(why)),
    };
    // What an earlier attempt left there is not empty.
    dispose(id, world).await?;
    match up(&spec, id, world).await {
        Ok(Ok(())) => Ok(Ok(running)),
        Ok(Err(why)) => Ok(Err(why)),
        Err(EngineError::Unreachable(why)) => Err(Retry(why)),
        Err(e) => Ok(Err(e.to_string())),
    }
}

/// Removes it with all that it has.
pub(super) async fn dispose(id: BackupId, world: &World) -> Result<(), Retry> {
    let (engine, name) = (&world.ports.engine, names::restore_check(id));
    let gone = async {
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
) -> Result<(ContainerSpec, Running), String> {
    let (instance_id, name) = (backup.instance_id, names::restore_check(id));
    let service = instance.service(role(backup.kind)).ok_or("the instance has no such database")?;
    let image = service.live.image.reference.as_deref().ok_or("the database never ran")?;
    if !tells_health(service) {
        return Err(NOT_TOLD.into());
    }
    let running = Running::of(world, instance_id, instance, service, name.clone())?;
    let spec =
        instances::container(&world.ports, instance_id, instance, service, &service.live, image)
            .map_err(|e| e.to_string())?;
    let mut mounts = spec.mounts;
    mounts.iter_mut().for_each(|mount| mount.volume.clone_from(&name));
    let labels = labels(id, world);
    let spec = ContainerSpec { network: name.clone(), name, port: None, mounts, labels, ..spec };
    Ok((spec, running))
}

/// Why the backups of a database cannot be verified, where its service does not [tell](tells_health).
pub(super) const NOT_TOLD: &str = "the template gives this database no health check by a command, so nobody knows when an empty one is up";

/// Whether it can be found out when an empty database of this kind is up.
pub(super) fn tells_health(service: &Service) -> bool {
    matches!(service.live.template().health_check, Some(HealthCheck::Command(_)))
}

fn labels(id: BackupId, world: &World) -> Labels {
    let mut labels = names::of_installation(&world.ports.site.installation);
    labels.insert(names::BACKUP.into(), id.to_string());
    labels
}

/// Makes it, and waits until it is well; or why it is not.
async fn up(
    spec: &ContainerSpec,
    id: BackupId,
    world: &World,
) -> Result<Result<(), String>, EngineError> {
    let (engine, labels) = (&world.ports.engine, labels(id, world));
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
