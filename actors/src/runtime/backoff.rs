//! Pauses that grow with each failure.

use std::time::Duration;

/// Pauses that double from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many failures before this one.
    pub fn pause(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(20)).min(self.longest)
    }

    /// The same for one resource, varied by a fifth.
    pub fn pause_of(self, id: u128, failures: u32) -> Duration {
        varied(self.pause(failures), 200, id, failures)
    }
}

/// The pause, longer or shorter by up to so many thousandths, so that resources that failed together do
/// not come back together. The id decides by how much, so the pauses of a resource are always the same.
pub fn varied(pause: Duration, thousandths: u32, id: u128, failures: u32) -> Duration {
    // The low bits of an id are random. Each failure takes other ones.
    let luck = u32::try_from((id >> (failures % 64)) & 0x3ff).unwrap_or(0);
    pause.saturating_mul(1000 - thousandths + luck * 2 * thousandths / 0x3ff) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use ulid::Ulid;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_resources() {
        let backoff =
            Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };
        let ids: Vec<u128> = (0..500).map(|_| Ulid::generate().0).collect();
        for (failures, millis) in [(0, 100), (1, 200), (5, 3_200), (6, 5_000), (u32::MAX, 5_000)] {
            let usual = Duration::from_millis(millis);
            assert_eq!(backoff.pause(failures), usual);
            let pauses: BTreeSet<_> =
                ids.iter().map(|id| backoff.pause_of(*id, failures)).collect();
            assert!(pauses.iter().all(|pause| *pause >= usual * 4 / 5 && *pause <= usual * 6 / 5));
            assert!(pauses.len() > 50, "after {failures}: {} pauses", pauses.len());
        }
        assert_eq!(backoff.pause_of(7, 3), backoff.pause_of(7, 3), "the same in each life");
    }
}
