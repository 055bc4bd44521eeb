//! When somebody is warned that a credential expires. Pure.

use contract::Timestamp;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How many days before the expiry somebody is warned.
const WARNINGS: [u32; 3] = [30, 7, 1];

/// The next warning: how many days before the expiry it is due, and when. `warned` is the last
/// warning that was sent. `None`: none is left.
pub fn next_warning(
    expires_at: Option<Timestamp>,
    warned: Option<u32>,
) -> Option<(u32, Timestamp)> {
    let expires_at = expires_at?;
    let days = WARNINGS.into_iter().find(|days| warned.is_none_or(|warned| *days < warned))?;
    Some((days, expires_at - DAY * days))
}

/// The last warning that is due now, which stands for the earlier ones.
pub fn due_warning(expires_at: Option<Timestamp>, now: Timestamp) -> Option<u32> {
    let expires_at = expires_at?;
    WARNINGS.into_iter().rev().find(|days| expires_at - DAY * *days <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_comes_once_and_a_late_one_stands_for_the_earlier_ones() {
        let start = Timestamp::from_millis(1_800_000_000_000);
        let expires_at = Some(start + DAY * 100);
        assert_eq!(due_warning(expires_at, start), None);
        let mut sent = Vec::new();
        let mut warned = None;
        while let Some((days, at)) = next_warning(expires_at, warned) {
            assert_eq!(due_warning(expires_at, at), Some(days));
            sent.push(days);
            warned = Some(days);
        }
        assert_eq!(sent, [30, 7, 1]);
        assert_eq!(due_warning(expires_at, start + DAY * 95), Some(7), "the service was off");
        assert_eq!(next_warning(expires_at, Some(7)).unwrap().0, 1);
        assert_eq!(next_warning(None, None), None);
    }
}
