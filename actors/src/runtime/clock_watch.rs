//! Watches the clock of the machine. After a jump, what seems to have expired may not have: deletions by
//! time wait until an operator confirms the clock, or until it has run evenly for a while.

use super::{
    clock::{Clock, Uptime},
    side_record::{End, SideRecord},
    store::Store,
};
use contract::{Fault, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::Change;

/// A larger difference is a jump.
const TOLERATED_MS: i64 = 3_600_000;
/// A clock that runs evenly for so long after a jump is right.
const TRUSTED_AFTER: Duration = Duration::from_secs(12 * 3600);
/// The time is written at most this often.
const WRITTEN_EVERY: Duration = Duration::from_secs(600);
/// There is one record.
const KEY: &str = "clock";

/// The time as it was last seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    pub at: Timestamp,
    pub uptime: Option<Uptime>,
    /// A jump that nobody confirmed.
    pub jump: Option<Jump>,
}

/// A jump of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Jump {
    /// The time after the jump.
    pub at: Timestamp,
    /// How far the clock went, with the jumps before. Negative: back.
    pub by_ms: i64,
}

impl SideRecord for ClockReading {
    fn end(&self) -> End {
        End::Never
    }
}

impl ClockReading {
    /// What is known after another look. A machine that was off for long cannot be told from a clock
    /// that jumped, so it counts as a jump, too.
    pub fn next(
        before: Option<&ClockReading>,
        at: Timestamp,
        uptime: Option<Uptime>,
    ) -> ClockReading {
        let Some(before) = before else { return ClockReading { at, uptime, jump: None } };
        let passed = match (&before.uptime, &uptime) {
            (Some(then), Some(now)) if then.boot == now.boot && then.ms <= now.ms => {
                now.ms - then.ms
            }
            _ => 0,
        };
        let by_ms = at.as_millis() - before.at.as_millis() - passed;
        let all = by_ms + before.jump.map_or(0, |jump| jump.by_ms);
        let jump = if by_ms.abs() > TOLERATED_MS {
            (all.abs() > TOLERATED_MS).then_some(Jump { at, by_ms: all })
        } else {
            before.jump.filter(|jump| at < jump.at + TRUSTED_AFTER)
        };
        ClockReading { at, uptime, jump }
    }
}

/// The jump that makes deletions by time wait, with a jump that [`look`] has not seen yet.
pub fn peek(store: &Store, clock: &Clock) -> Result<Option<Jump>, Fault> {
    let before = store.get::<ClockReading>(&KEY.to_owned())?;
    let before = before.as_deref().map(|seen| &**seen);
    Ok(ClockReading::next(before, clock.now(), clock.uptime()).jump)
}

/// The jump that makes deletions by time wait, as [`look`] last saw it.
pub fn jump(store: &Store) -> Result<Option<Jump>, Fault> {
    Ok(store.get::<ClockReading>(&KEY.to_owned())?.and_then(|seen| seen.jump))
}

/// Looks at the clock, and returns the jump that makes deletions by time wait.
pub async fn look(store: &Store, clock: &Clock) -> Result<Option<Jump>, Fault> {
    let key = KEY.to_owned();
    let before = store.get::<ClockReading>(&key)?;
    let after =
        ClockReading::next(before.as_deref().map(|seen| &**seen), clock.now(), clock.uptime());
    let jump = after.jump;
    let is_new = before.as_ref().is_none_or(|before| before.jump != jump);
    if let (true, Some(jump)) = (is_new, jump) {
        let seconds = jump.by_ms / 1000;
        tracing::error!(
            seconds,
            "the clock jumped, so nothing is deleted by time; see docs/OPERATING.md"
        );
    }
    if is_new || before.as_ref().is_some_and(|seen| after.at >= seen.at + WRITTEN_EVERY) {
        store.commit(Change::new().replace::<ClockReading>(&key, before.as_deref(), after)).await?;
    }
    Ok(jump)
}

/// The clock is right as it is.
pub async fn confirm(store: &Store, clock: &Clock) -> Result<(), Fault> {
    let key = KEY.to_owned();
    let before = store.get::<ClockReading>(&key)?;
    let after = ClockReading { at: clock.now(), uptime: clock.uptime(), jump: None };
    store.commit(Change::new().replace::<ClockReading>(&key, before.as_deref(), after)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    /// A look at the clock at this hour, when the machine has run for so many hours.
    fn look(before: Option<&ClockReading>, boot: &str, hour: i64, up: i64) -> ClockReading {
        let uptime = Uptime { boot: boot.into(), ms: up * HOUR };
        ClockReading::next(before, Timestamp::from_millis(hour * HOUR), Some(uptime))
    }

    fn hours(seen: &ClockReading) -> Option<i64> {
        seen.jump.map(|jump| jump.by_ms / HOUR)
    }

    #[test]
    fn a_clock_that_runs_evenly_never_jumps_however_long_the_service_was_off() {
        let first = look(None, "a", 100, 5);
        assert_eq!(hours(&look(Some(&first), "a", 900, 805)), None);
        assert_eq!(hours(&look(Some(&first), "a", 101, 5)), None, "an hour is tolerated");
        assert_eq!(hours(&look(Some(&first), "b", 101, 0)), None, "the machine started again");
    }

    #[test]
    fn a_jump_in_either_direction_waits_until_the_clock_is_back_or_even_for_long() {
        let first = look(None, "a", 10_000, 5);
        for by in [8760, 2, -2, -8760] {
            let jumped = look(Some(&first), "a", 10_001 + by, 6);
            assert_eq!(hours(&jumped), Some(by));
            let later = look(Some(&jumped), "a", 10_012 + by, 17);
            assert_eq!(hours(&later), Some(by), "eleven hours are not enough");
            assert_eq!(hours(&look(Some(&later), "a", 10_013 + by, 18)), None);
            assert_eq!(hours(&look(Some(&later), "a", 10_013, 18)), None, "it is set back");
            let again = look(Some(&later), "a", 10_013 + by + 5, 18);
            assert_eq!(hours(&again), Some(by + 5), "the next jump adds to it");
        }
    }

    #[test]
    fn a_machine_that_was_off_is_in_doubt() {
        let first = look(None, "a", 100, 5);
        assert_eq!(hours(&look(Some(&first), "b", 150, 0)), Some(50));
        let untold = ClockReading::next(Some(&first), Timestamp::from_millis(150 * HOUR), None);
        assert_eq!(hours(&untold), Some(50));
    }
}
