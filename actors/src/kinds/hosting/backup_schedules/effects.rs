//! Performs the effect of a backup schedule.

use super::rules::{BackupSchedules, Effect, Outcome};
use crate::{
    kinds::{
        hosting::{
            backups::{self, Backups, Begin},
            instances::Instances,
        },
        people::apps::Apps,
        world::World,
    },
    runtime::{
        messages::Rider,
        resource::{Input, Retry},
    },
};
use contract::{Fault, instances::DesiredState};
use std::sync::Arc;
use store::{Change, Snapshot};

pub(super) async fn perform(
    Effect::BackUp(id): Effect,
    schedule: Snapshot<BackupSchedules>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let instance = world.store.get::<Instances>(&schedule.instance_id)?;
    let app = world.store.get::<Apps>(&schedule.app_id)?;
    let (Some(instance), Some(app)) = (
        instance.filter(|found| !found.is_deleted() && found.app_id == schedule.app_id),
        app.filter(|app| !app.is_deleted()),
    ) else {
        return Ok(Outcome::NoInstance);
    };
    // Somebody stopped the instance on purpose: a failed backup would tell nobody anything.
    if instance.desired != DesiredState::Running {
        return Ok(Outcome::Done);
    }
    let of = (schedule.instance_id, &instance.state);
    let made = (Some(schedule.keep), schedule.verify);
    let begin = backups::begin(id, of, schedule.database, made, world.ports.clock.now());
    // No backup is created when the app is deleted at the same time.
    let app_id = schedule.app_id;
    let held: Rider<Backups> = Arc::new(move |_| Ok(Change::new().require(&app_id, &app)));
    let create =
        |begin| world.to::<Backups>(id).ask_with(Input::Create(Box::new(begin)), held.clone());
    let has_room = world.ports.machine.check_room(0);
    let mut made = match has_room {
        Ok(()) => create(begin.clone()).await,
        Err(full) => Err(full),
    };
    if let Err(why @ (Fault::OverQuota(_) | Fault::NoRoom)) = made {
        made = create(Begin { refused: Some(why.to_string()), ..begin }).await;
    }
    match made {
        // `NotFound`: the backup was created, and is deleted already.
        Ok(_) | Err(Fault::NotFound(_)) => Ok(Outcome::Done),
        // The database may be dumped or restored at the moment: the effect is tried again.
        Err(fault) => Err(fault.into()),
    }
}
