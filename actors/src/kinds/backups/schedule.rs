//! Backups that are made again and again. The schedule is the instance's; each backup is its own.

use super::{Backups, Begin, Command, State, effects::role};
use crate::{
    kinds::instances::{self, Instance, InstanceIndex, Instances},
    runtime::{
        entries::{SortedMoment, Under},
        resource::Retry,
    },
    world::World,
};
use contract::{
    BackupId, Fault, InstanceId, Timestamp,
    backups::{Backup, BackupKind, BackupState, RestoreState},
    text::CronExpression,
};
use croner::parser::CronParser;
use serde::{Deserialize, Serialize};

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
) -> Begin {
    let backup = Backup {
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
    };
    Begin { backup, verify }
}

/// Makes the backups that are due.
pub async fn run_due(world: &World) -> Result<(), Fault> {
    let now = world.ports.clock.now();
    let due = world.store.before(&InstanceIndex::Backup { at: SortedMoment(now) }, usize::MAX)?;
    let Ok(owners) = world.owners() else { return Ok(()) };
    for id in due {
        let Some(seen) = world.store.get::<Instances>(&id)? else { continue };
        let instance = &seen.state;
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
            match owners.backups.create(new, begin(new, (id, instance), *kind, made, now)).await {
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

/// Removes what is more than a schedule keeps, after this backup of it has come to its end.
pub(super) async fn thin(world: &World, made: &Backup) -> Result<(), Retry> {
    let instance = world.store.get::<Instances>(&made.instance_id)?;
    let schedule = instance.as_ref().and_then(|i| i.state.schedules.get(&made.kind));
    let Some(Schedule { keep, .. }) = schedule else { return Ok(()) };
    let mut scheduled = Vec::new();
    for key in world.store.all::<Backups>(&Under::<Instances>(made.instance_id))? {
        if let Some(seen) = world.store.get::<Backups>(&key)? {
            let backup = &seen.state.backup;
            let counts = backup.scheduled && backup.kind == made.kind;
            scheduled.extend(counts.then(|| (backup.id, Worth::of(&seen.state))));
        }
    }
    for id in surplus(&scheduled, *keep) {
        // One that is being put back goes after that.
        world.owners()?.backups.ask_if_there(id, Command::Delete).await?;
    }
    Ok(())
}

/// What a backup is worth to who keeps some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// It can be put back, as far as anybody knows.
    Good,
    /// Nobody knows yet.
    Unknown,
    /// It failed, or cannot be put back.
    None,
}

impl Worth {
    fn of(State { backup, useless, .. }: &State) -> Worth {
        let verified = backup.verification.as_ref().map(|verification| verification.state);
        match backup.state {
            BackupState::Running => Worth::Unknown,
            BackupState::Ready if verified == Some(RestoreState::Running) => Worth::Unknown,
            BackupState::Ready if !useless => Worth::Good,
            BackupState::Ready | BackupState::Failed => Worth::None,
        }
    }
}

/// Those of a schedule's backups, the newest first, that are too many. The last good one is never
/// among them for the sake of one that is not; of those that are not, a few that are newer than all
/// that are good stay to be seen.
fn surplus<I: Copy>(newest_first: &[(I, Worth)], keep: u32) -> Vec<I> {
    let (mut good, mut shown) = (0, 0);
    let goes = |(id, worth): &(I, Worth)| {
        let stays = match worth {
            Worth::Unknown => true,
            Worth::Good => {
                good += 1;
                good <= keep
            }
            Worth::None => {
                shown += 1;
                good == 0 && shown <= SHOWN_FAILURES
            }
        };
        (!stays).then_some(*id)
    };
    newest_first.iter().filter_map(goes).collect()
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
    fn the_last_good_backup_is_never_too_many() {
        use Worth::{Good, None, Unknown};
        let too_many = |worths: &[Worth], keep| {
            let numbered: Vec<_> = worths.iter().copied().enumerate().collect();
            surplus(&numbered, keep)
        };
        assert_eq!(too_many(&[Good, Good, Good], 2), [2]);
        assert_eq!(too_many(&[Unknown, Good, Good], 1), [2], "what is being verified may fail");
        assert_eq!(too_many(&[None, Good, None], 1), [2]);
        assert_eq!(too_many(&[None; 12], 3), [10, 11]);
        assert_eq!(too_many(&[Good, Unknown], 1), [0; 0]);
    }

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
