//! The handlers of the group Backups that manage schedules.

use super::{
    backups::{can_be_verified, no_database},
    instances::only_instance,
};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::{
            backup_schedules::{BackupScheduleClaim, BackupSchedules, Command, cron},
            backups::databases,
            instances::Instance,
        },
        world::World,
    },
    runtime::{
        resource::{Input, Row},
        store::Keyed,
    },
};
use contract::{
    AppId, Fault, Serves,
    backups::{
        BackupKind, BackupSchedule, GetBackupSchedule, ScheduleBackups, UnscheduleBackups,
        UnscheduledBackups,
    },
    instances::InstanceKind,
};

/// How many backups a schedule keeps by default, and at most.
const USUAL_KEPT: u32 = 7;
const MOST_KEPT: u32 = 100;

fn schedule(
    world: &World,
    app: AppId,
    kind: Option<InstanceKind>,
    database: Option<BackupKind>,
) -> Result<Keyed<BackupSchedules>, Fault> {
    let (id, instance) = only_instance(world, app, kind)?;
    let claim = BackupScheduleClaim::of(id, database_of(&instance, database)?);
    let found = world.store.held_by(&claim)?;
    // An instance that came from another app has not brought that app's schedule.
    let found = found.filter(|(_, schedule)| schedule.app_id == app);
    found.ok_or(Fault::NotFound(BackupSchedules::NOUN))
}

/// The named database, or the only one of the instance.
fn database_of(instance: &Instance, named: Option<BackupKind>) -> Result<BackupKind, Fault> {
    match (named, databases(instance).as_slice()) {
        (Some(named), there) if there.contains(&named) => Ok(named),
        (None, [only]) => Ok(*only),
        (None, [_, _, ..]) => Err(Fault::invalid("database", "is needed: the instance has two")),
        (named, _) => Err(no_database(named)),
    }
}

impl Serves<ScheduleBackups> for Platform {
    async fn serve(&self, cx: &Call, p: ScheduleBackups) -> Result<BackupSchedule, Fault> {
        let keep = p.keep.unwrap_or(USUAL_KEPT);
        if !(1..=MOST_KEPT).contains(&keep) {
            return Err(Fault::invalid("keep", format!("must be from 1 to {MOST_KEPT}")));
        }
        let next_at = cron::first(&p.cron, cx.now).map_err(|e| Fault::invalid("cron", e))?;
        let (instance_id, instance) = only_instance(&self.world, p.app_id, p.kind)?;
        let database = database_of(&instance, p.database)?;
        if p.verify {
            can_be_verified(&instance, database)?;
        }
        let (app_id, cron, verify) = (p.app_id, p.cron, p.verify);
        let there = self.world.store.holder(&BackupScheduleClaim::of(instance_id, database))?;
        let id = there.unwrap_or_else(|| self.world.ports.random.id(cx.now));
        let schedule =
            BackupSchedule { id, app_id, instance_id, database, cron, keep, verify, next_at };
        let show = |schedule: &BackupSchedule| Ok(schedule.clone());
        let input = match there {
            Some(_) => Input::Command(Command::Replace(schedule)),
            None => Input::Create(Box::new(schedule)),
        };
        cx.to::<BackupSchedules>(id).change_or_create(input, show).await
    }
}

impl Serves<GetBackupSchedule> for Platform {
    async fn serve(&self, _: &Call, p: GetBackupSchedule) -> Result<BackupSchedule, Fault> {
        let (_, schedule) = schedule(&self.world, p.app_id, p.kind, p.database)?;
        Ok(schedule.state.clone())
    }
}

impl Serves<UnscheduleBackups> for Platform {
    async fn serve(&self, cx: &Call, p: UnscheduleBackups) -> Result<UnscheduledBackups, Fault> {
        let (id, _) = schedule(&self.world, p.app_id, p.kind, p.database)?;
        let show = move |_: &BackupSchedule| Ok(UnscheduledBackups { deleted: id });
        cx.to::<BackupSchedules>(id).change(Command::Remove, show).await
    }
}
