//! The rules of a backup schedule: when a backup is due, it makes one and sets the next time.

use super::cron;
use crate::{
    kinds::world::World,
    runtime::resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
};
use contract::{
    AppId, BackupId, Fault, Id, InstanceId, ScheduleId, Timestamp,
    backups::{BackupKind, BackupSchedule},
};
use futures_util::future::LocalBoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::Snapshot;
use ulid::Ulid;

#[derive(Debug, Clone, Copy)]
pub struct BackupSchedules;

/// The pause of a schedule whose expression cannot be read.
const UNREADABLE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone)]
pub enum Command {
    /// Another schedule of the same database replaces this one.
    Replace(BackupSchedule),
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Create this backup. The id is fixed, so that a repeated effect creates no second one.
    BackUp(BackupId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The backup exists, or the instance is stopped on purpose.
    Done,
    /// The instance or its app is deleted.
    NoInstance,
}

impl Resource for BackupSchedules {
    const INDEX: u16 = 2;
    type New = BackupSchedule;
    type State = BackupSchedule;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, schedule: BackupSchedule) -> Result<Step<Self>, Fault> {
        Ok(Step::put(schedule))
    }

    fn on_command(
        _: BackupSchedule,
        _: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Replace(schedule) => Step::put(schedule),
            Command::Remove => Step::remove(),
        })
    }

    fn on_outcome(schedule: BackupSchedule, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Done => {
                let next_at = cron::next(&schedule.cron, at.now).unwrap_or(at.now + UNREADABLE);
                Step::put(BackupSchedule { next_at, ..schedule })
            }
            Outcome::NoInstance => Step::remove(),
        }
    }

    fn next(schedule: &BackupSchedule) -> Option<Work<Effect>> {
        Some(Work::at(schedule.next_at, Effect::BackUp(next_backup(schedule))))
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        let id = intent.get("BackUp").and_then(|id| BackupId::deserialize(id).ok());
        if let Some(at) = id.and_then(|id| i64::try_from(id.unique().timestamp_ms()).ok()) {
            kept.state.next_at = Timestamp::from_millis(at);
        }
    }

    /// `Stale`: the call is decided again, and replaces the schedule that exists.
    fn claims(schedule: &BackupSchedule) -> Vec<Unique<Self>> {
        let claim = BackupScheduleClaim::of(schedule.instance_id, schedule.database);
        vec![Unique::new(claim, || Fault::Stale)]
    }

    fn perform(
        effect: Effect,
        _: ScheduleId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, kept, world))
    }
}

impl Child for BackupSchedules {
    fn parent(schedule: &BackupSchedule) -> Option<AppId> {
        Some(schedule.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::claims! {
    /// A database has one schedule.
    pub enum BackupScheduleClaim of BackupSchedules {
        Sql { instance: InstanceId } = "sql",
        Document { instance: InstanceId } = "document",
    }
}

impl BackupScheduleClaim {
    pub fn of(instance: InstanceId, database: BackupKind) -> Self {
        match database {
            BackupKind::SqlDb => BackupScheduleClaim::Sql { instance },
            BackupKind::DocumentDb => BackupScheduleClaim::Document { instance },
        }
    }
}

/// The id of the next backup of a schedule. A schedule creates one backup at a time, so the time and
/// the schedule's own random part are unique together.
fn next_backup(schedule: &BackupSchedule) -> BackupId {
    let at = u64::try_from(schedule.next_at.as_millis()).unwrap_or_default();
    BackupId::of(Ulid::from_parts(at, schedule.id.unique().random()))
}
