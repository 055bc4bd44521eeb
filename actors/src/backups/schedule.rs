//! Backups that are made again and again. The schedule is the instance's; each backup is its own.

use super::{Backups, Command, effects::role};
use crate::{
    due::moment,
    instances::{self, Instance, Instances},
    runtime::resource::Kept,
    world::World,
};
use contract::{
    BackupId, Fault, InstanceId, Timestamp,
    backups::{Backup, BackupKind, BackupState, RestoreState},
    text::CronExpression,
};
use croner::parser::CronParser;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use store::StoreError;

/// When a database is dumped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// When, in UTC.
    pub cron: CronExpression,
    /// How many are kept.
    pub keep: u32,
    /// Whether each of them is verified.
    #[serde(default)]
    pub verify: bool,
    /// The next time.
    pub next_at: Timestamp,
}

/// How many scheduled backups that failed are kept to be seen.
const SHOWN_FAILURES: u32 = 10;

/// The next time after a moment that a schedule names.
pub fn next(cron: &CronExpression, after: Timestamp) -> Result<Timestamp, String> {
    let parsed = CronParser::new().parse(cron.as_str()).map_err(|e| e.to_string())?;
    let after = jiff::Timestamp::from_millisecond(after.as_millis()).map_err(|e| e.to_string())?;
    let after = after.to_zoned(jiff::tz::TimeZone::UTC);
    let next = parsed.find_next_occurrence(&after, false).map_err(|e| e.to_string())?;
    Ok(Timestamp::from_millis(next.timestamp().as_millisecond()))
}

/// How a backup comes about.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// By a schedule.
    pub scheduled: bool,
    /// Whether it is verified once it is ready.
    pub verify: bool,
}

/// A backup that begins now.
pub fn begin(
    id: BackupId,
    instance: (InstanceId, &Instance),
    kind: BackupKind,
    Made { scheduled, verify }: Made,
    now: Timestamp,
) -> Command {
    let backup = Box::new(Backup {
        id,
        instance_id: instance.0,
        app_id: instance.1.app_id,
        kind,
        state: BackupState::Running,
        scheduled,
        size: None,
        sha256: None,
        error: None,
        restore: None,
        verification: None,
        created_at: now,
        finished_at: None,
    });
    Command::Create { backup, verify }
}

/// Makes the backups that are due.
pub async fn run_due(world: &World) -> Result<(), StoreError> {
    let now = world.ports.clock.now();
    let due = world.store.before::<Kept<Instances>>("backup/", &moment(now), usize::MAX)?;
    let Ok(owners) = world.owners() else { return Ok(()) };
    for key in due {
        let (Ok(id), Some(seen)) =
            (InstanceId::from_str(&key), world.store.get::<Kept<Instances>>(&key)?)
        else {
            continue;
        };
        let instance = &seen.record.state;
        for (kind, schedule) in instance.schedules.iter().filter(|(_, s)| s.next_at <= now) {
            // First the next time: a crash here costs one backup, and never makes two.
            let (from, to) = (schedule.next_at, after(schedule, now));
            let advance = instances::Command::Advance { database: *kind, from, to };
            if let Err(fault) = owners.instances.ask(id, advance).await {
                tracing::warn!(%id, error = %fault, "a schedule did not go on");
                continue;
            }
            let new: BackupId = world.ports.random.id(now);
            let made = Made { scheduled: true, verify: schedule.verify };
            match owners.backups.ask(new, begin(new, (id, instance), *kind, made, now)).await {
                Ok(_) => {}
                Err(fault) => tracing::warn!(%id, error = %fault, "a backup was not begun"),
            }
        }
    }
    Ok(())
}

fn after(schedule: &Schedule, now: Timestamp) -> Timestamp {
    // A schedule that was read once can be read again; if not, it waits for a day.
    next(&schedule.cron, now).unwrap_or(now + std::time::Duration::from_secs(24 * 3600))
}

/// Removes what is more than a schedule keeps, after it made this backup. Only those count that are
/// ready and, where that was looked at, usable: the last good one is never removed for the sake of
/// one that is not.
pub(super) async fn thin(world: &World, made: &Backup) -> Result<(), StoreError> {
    let instance = world.store.get::<Kept<Instances>>(&made.instance_id.to_string())?;
    let schedule = instance.as_ref().and_then(|i| i.record.state.schedules.get(&made.kind));
    let (Some(Schedule { keep, .. }), Ok(owners)) = (schedule, world.owners()) else {
        return Ok(());
    };
    let entry = format!("instance/{}", made.instance_id);
    let (mut kept, mut failed) = (0, 0);
    for key in world.store.newest::<Kept<Backups>>(&entry, None, usize::MAX)? {
        let Some(seen) = world.store.get::<Kept<Backups>>(&key)? else { continue };
        let backup = &seen.record.state.backup;
        if !backup.scheduled || backup.kind != made.kind || backup.state == BackupState::Running {
            continue;
        }
        let usable = backup.state == BackupState::Ready
            && backup.verification.as_ref().is_none_or(|v| v.state != RestoreState::Failed);
        if usable && kept < *keep {
            kept += 1;
            continue;
        }
        // Of the others, a few that are newer than all that are kept stay to be seen.
        if !usable && kept == 0 && failed < SHOWN_FAILURES {
            failed += 1;
            continue;
        }
        if let Ok(id) = key.parse::<BackupId>() {
            let gone: Result<(), Fault> = owners.backups.ask_if_there(id, Command::Delete).await;
            if let Err(fault) = gone {
                tracing::warn!(key, error = %fault, "an old backup was not removed");
            }
        }
    }
    Ok(())
}

/// The databases that an instance has.
pub fn databases(instance: &Instance) -> Vec<BackupKind> {
    let all = [BackupKind::DocumentDb, BackupKind::SqlDb];
    all.into_iter().filter(|kind| instance.part(role(*kind)).is_some()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_is_in_utc_and_after_now() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let daily: CronExpression = "30 3 * * *".parse().unwrap();
        let next_of = |cron, now: &str| next(cron, at(now)).unwrap();
        assert_eq!(next_of(&daily, "2026-01-31T03:29:59.000Z"), at("2026-01-31T03:30:00.000Z"));
        assert_eq!(next_of(&daily, "2026-01-31T03:30:00.000Z"), at("2026-02-01T03:30:00.000Z"));
        assert!(next(&"99 * * * *".parse().unwrap(), at("2026-01-31T03:30:00.000Z")).is_err());
    }
}
