//! The pauses between the attempts of a delivery. Source: Standard Webhooks 1.0.0, "Retry schedule".

use crate::runtime::backoff::varied;
use contract::{DeliveryId, Id};
use std::time::Duration;

/// The pause before each attempt after the first one, in seconds.
const PAUSES: [u64; 9] =
    [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600];

/// How many attempts a delivery gets by the schedule.
pub const ATTEMPTS: usize = PAUSES.len() + 1;
/// How many attempts beside them may come sooner than the schedule says, because the receiver asks
/// for that.
pub const EARLY: usize = 10;
/// The shortest and the longest pause that a receiver can ask for.
const SHORTEST_ASKED: Duration = Duration::from_secs(1);
const LONGEST_ASKED: Duration = Duration::from_secs(24 * 3600);

/// The pause before the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// That of the schedule, or a longer one that the receiver asked for.
    Usual(Duration),
    /// A shorter one that the receiver asked for. The schedule goes on where it was.
    Early(Duration),
}

/// The pause after so many failed attempts, of which so many were early; `None` after the last one.
///
/// It varies by a tenth, so that the deliveries that failed together do not come back together. The
/// id of the delivery decides by how much. A receiver can ask for another pause, of a second to a day.
pub fn pause(
    id: DeliveryId,
    failed: usize,
    early: usize,
    asked: Option<Duration>,
) -> Option<Pause> {
    let failed = failed.checked_sub(early)?;
    let seconds = *PAUSES.get(failed.checked_sub(1)?)?;
    let failures = u32::try_from(failed).unwrap_or(u32::MAX);
    let varied = varied(Duration::from_secs(seconds), 100, id.unique().0, failures);
    Some(match asked.map(|asked| asked.clamp(SHORTEST_ASKED, LONGEST_ASKED)) {
        Some(asked) if asked >= varied => Pause::Usual(asked),
        Some(asked) if early < EARLY => Pause::Early(asked),
        Some(_) | None => Pause::Usual(varied),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use ulid::Ulid;

    fn usual(pause: Option<Pause>) -> Duration {
        match pause {
            Some(Pause::Usual(pause)) => pause,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pauses_grow_and_vary_by_a_tenth() {
        let ids = (0..500).map(|_| DeliveryId::of(Ulid::generate()));
        let ids: Vec<_> = ids.collect();
        for (failed, seconds) in (1..).zip(PAUSES) {
            let pauses: BTreeSet<_> =
                ids.iter().map(|id| usual(pause(*id, failed, 0, None))).collect();
            let thousandth = Duration::from_millis(seconds);
            assert!(*pauses.first().unwrap() >= 900 * thousandth, "{failed}");
            assert!(*pauses.last().unwrap() <= 1100 * thousandth, "{failed}");
            assert!(pauses.len() > 50, "after {failed}: {} pauses", pauses.len());
        }
        assert_eq!(pause(ids[0], ATTEMPTS, 0, None), None, "the last attempt was the last");
        assert_eq!(pause(ids[0], 0, 0, None), None);
    }

    #[test]
    fn a_receiver_can_ask_for_another_pause_but_not_for_ever() {
        let id = DeliveryId::of(Ulid(7));
        let seconds = Duration::from_secs;
        let after_second = |asked| pause(id, 2, 0, Some(seconds(asked))).unwrap();
        assert_eq!(after_second(3600), Pause::Usual(seconds(3600)));
        assert_eq!(after_second(u64::MAX), Pause::Usual(LONGEST_ASKED));
        assert_eq!(after_second(2), Pause::Early(seconds(2)));
        assert_eq!(after_second(0), Pause::Early(SHORTEST_ASKED));
        // Early attempts take nothing from the schedule, and come to an end.
        assert_eq!(pause(id, 2 + 5, 5, None), pause(id, 2, 0, None));
        let soon = Some(seconds(2));
        assert_eq!(pause(id, 2 + EARLY, EARLY, soon), pause(id, 2, 0, None));
        assert_eq!(pause(id, ATTEMPTS + EARLY, EARLY, soon), None);
    }
}
