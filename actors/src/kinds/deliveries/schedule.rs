//! The pauses between the attempts of a delivery. Source: Standard Webhooks 1.0.0, "Retry schedule".

use contract::{DeliveryId, Id};
use std::time::Duration;

/// The pause before each attempt after the first one, in seconds.
const PAUSES: [u64; 9] =
    [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600];

/// How many attempts a delivery gets.
pub const ATTEMPTS: usize = PAUSES.len() + 1;
/// The longest pause that a receiver can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(24 * 3600);

/// The pause after so many failed attempts; `None` after the last one.
///
/// It varies by a tenth, so that the deliveries that failed together do not come back together. The
/// id of the delivery decides by how much. A receiver can ask for a longer pause, of up to a day.
pub fn pause(id: DeliveryId, failed: usize, asked: Option<Duration>) -> Option<Duration> {
    let seconds = *PAUSES.get(failed.checked_sub(1)?)?;
    let luck = u64::try_from((id.unique().0 >> failed) & 0x3ff).unwrap_or(0);
    // From 900 to 1100 thousandths.
    let varied = Duration::from_millis(seconds.saturating_mul(900 + luck * 200 / 0x3ff));
    let asked = asked.map_or(Duration::ZERO, |asked| asked.min(LONGEST_ASKED));
    Some(varied.max(asked))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use ulid::Ulid;

    #[test]
    fn pauses_grow_and_vary_by_a_tenth() {
        let ids = (0..500).map(|_| DeliveryId::of(Ulid::generate()));
        let ids: Vec<_> = ids.collect();
        for (failed, seconds) in (1..).zip(PAUSES) {
            let pauses: BTreeSet<_> =
                ids.iter().map(|id| pause(*id, failed, None).unwrap()).collect();
            let thousandth = Duration::from_millis(seconds);
            assert!(*pauses.first().unwrap() >= 900 * thousandth, "{failed}");
            assert!(*pauses.last().unwrap() <= 1100 * thousandth, "{failed}");
            assert!(pauses.len() > 50, "after {failed}: {} pauses", pauses.len());
        }
        assert_eq!(pause(ids[0], ATTEMPTS, None), None, "the last attempt was the last");
        assert_eq!(pause(ids[0], 0, None), None);
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_but_not_for_less_and_not_for_ever() {
        let id = DeliveryId::of(Ulid(7));
        let after_second = |asked| pause(id, 2, Some(Duration::from_secs(asked))).unwrap();
        let usual = pause(id, 2, None).unwrap();
        assert_eq!(after_second(1), usual);
        assert_eq!(after_second(3600), Duration::from_secs(3600));
        assert_eq!(after_second(u64::MAX), LONGEST_ASKED);
    }
}
