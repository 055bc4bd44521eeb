//! Carries over schedules of earlier versions, which were part of their instance's record.

use super::BackupSchedules;
use crate::{
    kinds::{
        hosting::instances::{InstanceIndex, Instances},
        world::World,
    },
    runtime::{entries::SortedMoment, resource::Kept},
};
use contract::{Fault, Timestamp, backups::BackupSchedule};
use store::Change;

/// Gives each schedule a record of its own. The schedules of an instance leave its record in the
/// transaction that creates their records, so a crash neither loses nor doubles a schedule.
pub(crate) async fn carry_over(world: &World) -> Result<(), Fault> {
    let any =
        InstanceIndex::EarlierSchedules { at: SortedMoment(Timestamp::from_millis(i64::MAX)) };
    for found in world.store.before::<Instances>(&any) {
        let (instance_id, seen) = found?;
        let mut kept: Kept<Instances> = (**seen).clone();
        let (app_id, schedules) = (kept.app_id, std::mem::take(&mut kept.state.schedules));
        let mut change = Change::new().replace::<Instances>(&instance_id, Some(&seen), kept);
        for (database, earlier) in schedules {
            let id = world.ports.random.id(world.ports.clock.now());
            let schedule = BackupSchedule {
                id,
                app_id,
                instance_id,
                database,
                cron: earlier.cron,
                keep: earlier.keep,
                verify: earlier.verify,
                next_at: earlier.next_at,
            };
            change = change.create::<BackupSchedules>(&id, Kept::at_rest(schedule));
        }
        world.store.commit(change).await?;
    }
    Ok(())
}
