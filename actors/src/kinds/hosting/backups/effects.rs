//! Performs the effects of a backup.

use super::{
    restore_check, retention,
    rules::{Backups, Effect, Outcome, State},
};
use crate::{
    kinds::{
        hosting::{
            instances::{
                Command, Instances,
                database::{RunningDatabase, role},
            },
            names,
        },
        people::{tenant::organization, usage},
        world::World,
    },
    ports::NotDone,
    runtime::{resource::Retry, store::Store},
};
use contract::{
    BackupId, Fault, InstanceId, backups::Backup, instances::ServiceState, quotas::Quota,
};
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    effect: Effect,
    id: BackupId,
    kept: Snapshot<Backups>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Dump => match running(&kept.state, &world)? {
            Ok(database) => {
                let most = room(&kept.state.backup, &world)?;
                let dumped = database.dump(id, most, &world).await;
                ended(dumped.map(|(size, sha256)| Outcome::Dumped(size, sha256)))
            }
            Err(why) => Ok(Outcome::Failed(why)),
        },
        Effect::Restore => match running(&kept.state, &world)? {
            Ok(database) => put_into(&database, id, &kept.state, &world).await,
            Err(why) => Ok(Outcome::Failed(why)),
        },
        Effect::Restart => restart(kept.state.backup.instance_id, &world).await,
        Effect::Verify => verify(id, &kept.state, &world).await,
        Effect::Dispose => {
            restore_check::dispose(id, &kept.state.backup, &world).await?;
            Ok(Outcome::Disposed)
        }
        Effect::Thin => {
            retention::apply_retention(&world, &kept.state).await?;
            Ok(Outcome::Thinned)
        }
        Effect::Clean | Effect::Discard => {
            world.ports.dumps.discard(id).await?;
            Ok(Outcome::Discarded)
        }
    }
}

pub(super) const DELETED: &str = "the instance was deleted";

/// The instance of a backup, unless it is deleted or belongs to another app by now.
pub(crate) fn instance_of_backup(
    backup: &Backup,
    store: &Store,
) -> Result<Option<Snapshot<Instances>>, Fault> {
    let found = store.get::<Instances>(&backup.instance_id)?;
    Ok(found.filter(|found| !found.is_deleted() && found.app_id == backup.app_id))
}

/// How many bytes the file of a backup may have.
fn room(backup: &Backup, world: &World) -> Result<u64, Fault> {
    let organization = organization(&world.store, backup.app_id)?;
    Ok(usage::left(world, organization, Quota::BackupBytes)?.unwrap_or(u64::MAX))
}

/// The database of a backup, or the reason why there is none to dump or restore.
fn running(state: &State, world: &World) -> Result<Result<RunningDatabase, String>, Retry> {
    let backup = &state.backup;
    let Some(found) = instance_of_backup(backup, &world.store)? else {
        return Ok(Err(DELETED.into()));
    };
    let (instance, role) = (&found.state, role(backup.kind));
    let service =
        instance.service(role).filter(|service| service.live.state == ServiceState::Running);
    let Some(service) = service else { return Ok(Err("the database does not run".into())) };
    let container = names::container(backup.instance_id, role, service.live.generation);
    Ok(RunningDatabase::of(world, backup.instance_id, instance, service, container))
}

/// Restores a backup into an empty database. A failure is tried once more in a new database: its
/// cause may be the start of the database and not the backup.
async fn verify(id: BackupId, state: &State, world: &World) -> Result<Outcome, Retry> {
    let _turn = restore_check::turn(id, &state.backup, world).await?;
    let mut again = true;
    loop {
        let database = match restore_check::begin(id, &state.backup, world).await? {
            Ok(database) => database,
            Err(why) => return Ok(Outcome::Unverified(why)),
        };
        match put_into(&database, id, state, world).await? {
            Outcome::Failed(_) if again => again = false,
            done => return Ok(done),
        }
    }
}

/// The servers of an instance remember what was in its database: a Parse Server would refuse the classes
/// that came back.
async fn restart(instance: InstanceId, world: &World) -> Result<Outcome, Retry> {
    match world.to::<Instances>(instance).ask(Command::Restart).await {
        // It stops, may not run or is gone, so its servers read the database anew.
        Ok(_) | Err(Fault::NotNow(_) | Fault::OverQuota(_) | Fault::NotFound(_)) => {
            Ok(Outcome::Restarted)
        }
        Err(fault) => Err(fault.into()),
    }
}

async fn put_into(
    database: &RunningDatabase,
    id: BackupId,
    state: &State,
    world: &World,
) -> Result<Outcome, Retry> {
    let Some(sha256) = &state.backup.sha256 else {
        return Ok(Outcome::Failed("the backup is not ready".into()));
    };
    ended(database.restore(id, sha256, world).await.map(|()| Outcome::Restored))
}

/// What was refused has failed. What the engine did not answer is tried again.
fn ended(done: Result<Outcome, NotDone>) -> Result<Outcome, Retry> {
    match done {
        Ok(outcome) => Ok(outcome),
        Err(NotDone::Refused(why)) => Ok(Outcome::Failed(why)),
        Err(NotDone::Unreachable(why)) => Err(Retry(why)),
    }
}
