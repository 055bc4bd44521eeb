//! The attempts on one target in the store, and whether they leave room for another one. Pure.

use crate::{
    call::window::Window,
    runtime::side_record::{End, SideRecord},
};
use contract::{EventId, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::Merge;

/// Failures after which one guesser waits.
const MOST_FAILURES: usize = 10;
/// Failures of all unknown addresses together after which they wait.
const MOST_OF_STRANGERS: usize = 20;
const WITHIN: Window = Window(Duration::from_secs(15 * 60));
/// An attempt that has no end by then was made by a process that ended. It counts as failed.
const OPEN_FOR: Duration = Duration::from_secs(120);

/// The recent attempts on one target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempts(Vec<Attempt>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) id: EventId,
    pub(super) by: String,
    /// Whether it comes from an address from which nobody has signed in.
    pub(super) is_strange: bool,
    pub(super) at: Timestamp,
    /// Whether the password is still being checked.
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    Pass,
    /// The attempts under way may use up the failures that are left.
    Wait,
    /// This guesser waits for so many seconds.
    Locked(u64),
    /// Every unknown address waits for so many seconds.
    AllLocked(u64),
}

/// What became of attempts.
#[derive(Debug, Clone)]
pub enum Ended {
    Failed(EventId),
    /// The earlier failures of this guesser are forgotten.
    Right(EventId),
    /// The password was not checked.
    Unchecked(EventId),
    /// The failures of all guessers are forgotten.
    All,
}

impl Attempts {
    pub(super) fn judge(&self, next: &Attempt) -> Verdict {
        let recent = || self.0.iter().filter(|earlier| WITHIN.has(earlier.at, next.at));
        let own = || recent().filter(|earlier| earlier.by == next.by);
        let strange = || recent().filter(|earlier| earlier.is_strange);
        if let Some(seconds) = until_free(own(), MOST_FAILURES, next.at) {
            return Verdict::Locked(seconds);
        }
        if next.is_strange
            && let Some(seconds) = until_free(strange(), MOST_OF_STRANGERS, next.at)
        {
            return Verdict::AllLocked(seconds);
        }
        let full = own().count() >= MOST_FAILURES
            || next.is_strange && strange().count() >= MOST_OF_STRANGERS;
        if full { Verdict::Wait } else { Verdict::Pass }
    }

    /// With this attempt, and without those that are old.
    pub(super) fn and(&self, next: Attempt) -> Attempts {
        let recent = self.0.iter().filter(|earlier| WITHIN.has(earlier.at, next.at)).cloned();
        let mut attempts: Vec<_> = recent.collect();
        attempts.push(next);
        Attempts(attempts)
    }

    fn close(&mut self, ended: &Ended) {
        let (id, keeps) = match ended {
            Ended::Failed(id) => (id, true),
            Ended::Right(id) | Ended::Unchecked(id) => (id, false),
            Ended::All => return self.0.clear(),
        };
        let Some(at) = self.0.iter().position(|attempt| attempt.id == *id) else { return };
        let mut attempt = self.0.remove(at);
        if matches!(ended, Ended::Right(_)) {
            self.0.retain(|earlier| earlier.by != attempt.by || earlier.is_open);
        }
        attempt.is_open = false;
        self.0.extend(keeps.then_some(attempt));
    }
}

impl Attempt {
    fn has_failed(&self, now: Timestamp) -> bool {
        !self.is_open || now.since(self.at) >= OPEN_FOR
    }
}

/// Seconds until fewer than `most` of the attempts failed in the last 15 minutes; `None` if that is
/// so already.
fn until_free<'a>(
    attempts: impl Iterator<Item = &'a Attempt>,
    most: usize,
    now: Timestamp,
) -> Option<u64> {
    WITHIN.until_fewer(most, attempts.filter(|a| a.has_failed(now)).map(|a| a.at), now)
}

impl SideRecord for Attempts {
    fn end(&self) -> End {
        WITHIN.end_of(self.0.iter().map(|attempt| attempt.at))
    }
}

impl Merge for Attempts {
    type Delta = Ended;

    fn merge(before: Option<Self>, ended: &Ended) -> Option<Self> {
        let mut attempts = before?;
        attempts.close(ended);
        (!attempts.0.is_empty()).then_some(attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    fn attempt(by: &str, second: u32) -> Attempt {
        let at = Timestamp::from_millis(i64::from(second) * 1000);
        let is_strange = by.starts_with("stranger");
        let id = EventId::of(Ulid::generate());
        Attempt { id, by: by.into(), is_strange, at, is_open: true }
    }

    /// Begins an attempt if it passes; returns the seconds to wait if it does not.
    fn begin(attempts: &mut Attempts, by: &str, second: u32) -> Result<EventId, Option<u64>> {
        let next = attempt(by, second);
        match attempts.judge(&next) {
            Verdict::Pass => {
                let id = next.id;
                *attempts = attempts.and(next);
                Ok(id)
            }
            Verdict::Wait => Err(None),
            Verdict::Locked(seconds) | Verdict::AllLocked(seconds) => Err(Some(seconds)),
        }
    }

    fn fail(attempts: &mut Attempts, by: &str, second: u32) -> Result<(), Option<u64>> {
        begin(attempts, by, second).map(|id| attempts.close(&Ended::Failed(id)))
    }

    #[test]
    fn the_eleventh_waits_until_the_first_is_15_minutes_old() {
        let mut attempts = Attempts::default();
        for second in 0..10 {
            assert_eq!(fail(&mut attempts, "stranger 1", second), Ok(()));
        }
        assert_eq!(fail(&mut attempts, "stranger 1", 10), Err(Some(890)));
        assert_eq!(fail(&mut attempts, "stranger 1", 899), Err(Some(1)));
        assert_eq!(attempts.end(), End::At(Timestamp::from_millis(909_000)));
        assert_eq!(fail(&mut attempts, "stranger 1", 900), Ok(()));
        assert_eq!(fail(&mut attempts, "stranger 1", 900), Err(Some(1)));
        assert_eq!(attempts.0.len(), 10, "old ones go");
        assert_eq!(Attempts::merge(Some(attempts), &Ended::All), None);
    }

    #[test]
    fn strangers_share_twenty_and_a_known_address_has_its_own_ten() {
        let mut attempts = Attempts::default();
        for n in 0..20 {
            assert_eq!(fail(&mut attempts, &format!("stranger {n}"), n), Ok(()));
        }
        assert_eq!(fail(&mut attempts, "stranger 99", 20), Err(Some(880)));
        for second in 20..30 {
            assert_eq!(fail(&mut attempts, "known", second), Ok(()));
        }
        assert_eq!(fail(&mut attempts, "known", 30), Err(Some(890)));
        let right = begin(&mut attempts, "another known", 30).unwrap();
        attempts.close(&Ended::Right(right));
        assert_eq!(fail(&mut attempts, "stranger 99", 31), Err(Some(869)), "that frees none");
    }

    #[test]
    fn attempts_under_way_are_waited_for() {
        let mut attempts = Attempts::default();
        let begin = |attempts: &mut Attempts| begin(attempts, "stranger 1", 0);
        let mut open: Vec<_> = (0..10).map(|_| begin(&mut attempts).unwrap()).collect();
        assert_eq!(begin(&mut attempts), Err(None), "it waits");
        attempts.close(&Ended::Unchecked(open.pop().unwrap()));
        let eleventh = begin(&mut attempts).unwrap();
        assert_eq!(begin(&mut attempts), Err(None));
        attempts.close(&Ended::Right(eleventh));
        open.into_iter().for_each(|id| attempts.close(&Ended::Failed(id)));
        assert!(begin(&mut attempts).is_ok(), "nine failed, and one was right");
        assert_eq!(fail(&mut attempts, "stranger 1", 1), Err(None));
        // What a process that ended has left open counts as failed.
        assert_eq!(fail(&mut attempts, "stranger 1", 130), Err(Some(770)));
    }

    #[test]
    fn a_clock_that_was_ahead_locks_nobody_out() {
        let mut attempts = Attempts::default();
        for _ in 0..10 {
            assert_eq!(fail(&mut attempts, "known", 1_000_000), Ok(()));
        }
        assert_eq!(fail(&mut attempts, "known", 1_000_000), Err(Some(900)));
        assert_eq!(fail(&mut attempts, "known", 10), Ok(()));
        assert_eq!(attempts.0.len(), 1);
    }

    #[test]
    fn who_is_right_frees_the_own_address() {
        let mut attempts = Attempts::default();
        for second in 0..9 {
            assert_eq!(fail(&mut attempts, "known", second), Ok(()));
        }
        let right = begin(&mut attempts, "known", 9).unwrap();
        attempts.close(&Ended::Right(right));
        assert_eq!(attempts, Attempts::default());
    }
}
