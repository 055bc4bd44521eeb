//! Counts what happened within a time until now: the failed sign-ins and the mails that the store remembers.

use crate::runtime::side_record::End;
use contract::Timestamp;
use std::time::Duration;

/// A length of time that ends now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window(pub(super) Duration);

impl Window {
    /// Whether something of this time counts. What lies far ahead was written while the clock was wrong, and
    /// counts no more than what is old.
    pub(super) fn has(self, at: Timestamp, now: Timestamp) -> bool {
        now.since(at) < self.0 && at.since(now) < self.0
    }

    /// Seconds until fewer than `most` of these, all of which count, are left. `None`: that is so already.
    pub(super) fn until_fewer(
        self,
        most: usize,
        times: impl Iterator<Item = Timestamp>,
        now: Timestamp,
    ) -> Option<u64> {
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        let at = times.len().checked_sub(most).and_then(|first| times.get(first))?;
        Some(self.0.saturating_sub(now.since(*at)).as_secs().max(1))
    }

    /// When a record of these is of no use any more.
    pub(super) fn end_of(self, times: impl Iterator<Item = Timestamp>) -> End {
        End::At(times.max().unwrap_or(Timestamp::from_millis(0)) + self.0)
    }
}
