//! When the provider or the shop is asked next. Pure.

use crate::runtime::backoff::Backoff;
use contract::{CheckoutId, Id, Timestamp};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// How long a buyer may take to pay. No provider keeps a page open for longer than a day.
pub const PAYABLE: Duration = Duration::from_secs(24 * 3600 - 300);
/// How long a buyer may look for the card. Paystack calls a payment abandoned from the moment at which its
/// page is opened.
const LOOKS_FOR_THE_CARD: Duration = Duration::from_secs(900);
/// How long the attempts to open a page go on without an answer.
pub const BEGINS_WITHIN: Duration = Duration::from_secs(120);
/// The pauses after failed attempts.
const ATTEMPTS: Backoff = Backoff { first: Duration::from_secs(1), longest: HOUR };
/// The pauses before a look that had no answer is repeated.
const LOOKS: Backoff = Backoff { longest: Duration::from_secs(12 * 3600), ..ATTEMPTS };
/// For how long a shop may work on a request that got no answer.
pub const QUIET: Duration = MINUTE;
/// For how long an unsettled payment is nobody's concern.
const PATIENCE: Duration = Duration::from_secs(600);

/// The next look at a payment for which the buyer has a page since `opened`. Notices of the provider
/// usually come before it. `None`: nobody looks any more, unless somebody asks.
///
/// Some providers let a buyer pay days later, so the looks go on for three days.
pub fn next_look(opened: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let pause = match now.since(opened) {
        age if age < MINUTE * 10 => MINUTE,
        age if age < HOUR * 2 => MINUTE * 10,
        age if age < HOUR * 25 => HOUR,
        age if age < HOUR * 72 => HOUR * 12,
        _ => return None,
    };
    Some(now + pause)
}

/// Whether a buyer who has not paid yet is probably still there.
pub fn may_still_pay(opened: Timestamp, now: Timestamp) -> bool {
    now.since(opened) < LOOKS_FOR_THE_CARD
}

/// The pause after this many failed attempts of a checkout, of which the service asked for `at_least`.
pub fn pause(id: CheckoutId, attempts: u32, at_least: Duration) -> Duration {
    growing(ATTEMPTS, id, attempts, at_least)
}

/// The pause after this many looks in a row without an answer. The looks go on until the provider
/// answers, however long that takes: the key may be revoked for days while buyers pay.
pub fn pause_of_looks(id: CheckoutId, attempts: u32, at_least: Duration) -> Duration {
    growing(LOOKS, id, attempts, at_least)
}

fn growing(backoff: Backoff, id: CheckoutId, attempts: u32, at_least: Duration) -> Duration {
    let pause = backoff.pause_of(id.unique().0, attempts.saturating_sub(1));
    pause.max(at_least).min(backoff.longest)
}

/// Whether people must hear that money that arrived at this time is not settled. A refusal does not
/// go away by itself.
pub fn is_alarming(paid_at: Timestamp, now: Timestamp, is_refused: bool) -> bool {
    is_refused || now.since(paid_at) >= PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulid::Ulid;

    #[test]
    fn looks_become_rare_and_end() {
        let opened = Timestamp::from_millis(1_800_000_000_000);
        let (mut now, mut looks) = (opened, 0);
        while let Some(next) = next_look(opened, now) {
            assert!(next > now);
            (now, looks) = (next, looks + 1);
        }
        assert!((HOUR * 72..HOUR * 96).contains(&now.since(opened)), "{:?}", now.since(opened));
        assert!(looks < 60, "{looks} looks");
    }

    #[test]
    fn pauses_double_up_to_an_hour() {
        // The pauses of this id are the longest.
        let id = CheckoutId::of(Ulid(u128::MAX));
        let pauses = [1, 2, 3, 20].map(|attempts| pause(id, attempts, Duration::ZERO).as_millis());
        assert_eq!(pauses, [1_200, 2_400, 4_800, 3_600_000]);
        assert_eq!(pause(id, 1, MINUTE), MINUTE);
        assert_eq!(pause_of_looks(id, u32::MAX, Duration::ZERO), HOUR * 12);
    }
}
