//! The pauses before an effect that failed is tried again.

use std::time::Duration;

/// The pause doubles from `FIRST` to `LONGEST`.
const FIRST: Duration = Duration::from_millis(100);
pub(super) const LONGEST: Duration = Duration::from_secs(5);

/// The pause after so many failures before this one.
///
/// It varies by a fifth, so that resources that failed together do not come back together. The id of
/// the resource decides by how much, so the pauses of a resource are always the same.
pub(super) fn pause(id: u128, failures: u32) -> Duration {
    let usual = FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST);
    // The low bits of an id are random. Each failure takes other ones.
    let luck = u32::try_from((id >> (failures % 64)) & 0x3ff).unwrap_or(0);
    // From 800 to 1200 thousandths.
    usual * (800 + luck * 400 / 0x3ff) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use ulid::Ulid;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_resources() {
        let ids: Vec<u128> = (0..500).map(|_| Ulid::generate().0).collect();
        for (failures, millis) in [(0, 100), (1, 200), (5, 3_200), (6, 5_000), (u32::MAX, 5_000)] {
            let pauses: BTreeSet<_> = ids.iter().map(|id| pause(*id, failures)).collect();
            let usual = Duration::from_millis(millis);
            assert!(pauses.iter().all(|pause| *pause >= usual * 4 / 5 && *pause <= usual * 6 / 5));
            assert!(pauses.len() > 50, "after {failures}: {} pauses", pauses.len());
        }
        assert_eq!(pause(7, 3), pause(7, 3), "a resource has the same pauses in each life");
    }
}
