//! Limits the mails of invitations within an hour. Like the rate limit, it counts in memory only.

use contract::Timestamp;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

const WITHIN: Duration = Duration::from_secs(3600);
/// The most senders and recipients counted at a time. Beyond it, those without a mail in the last
/// hour are forgotten; if that makes no room, no mail is counted.
const MOST_COUNTED: usize = 100_000;

/// A sender or recipient, and how many mails it may send or get within an hour.
pub type Share = (String, usize);

/// The times of the mails of each sender and recipient.
#[derive(Default)]
pub struct MailLimit(Mutex<HashMap<String, Vec<Timestamp>>>);

/// A mail that is counted. Dropping it takes the count back, unless [`Counted::was_sent`] was
/// called.
pub struct Counted<'a> {
    limit: &'a MailLimit,
    names: Vec<String>,
    at: Timestamp,
}

/// One of the shares is used up.
#[derive(Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// The index of the share.
    pub share: usize,
    /// Seconds until the share has room.
    pub retry_after: u64,
}

impl MailLimit {
    /// Counts a mail for all shares, or for none.
    pub fn count(&self, shares: &[Share], now: Timestamp) -> Result<Counted<'_>, UsedUp> {
        let mut sent = self.sent();
        if sent.len() >= MOST_COUNTED {
            sent.retain(|_, all| all.last().is_some_and(|at| now.since(*at) < WITHIN));
            if sent.len() >= MOST_COUNTED {
                return Err(UsedUp { share: 0, retry_after: WITHIN.as_secs() });
            }
        }
        for (share, (name, most)) in shares.iter().enumerate() {
            let Some(all) = sent.get_mut(name) else { continue };
            all.retain(|at| now.since(*at) < WITHIN);
            if let Some(at) = all.len().checked_sub(*most).and_then(|first| all.get(first)) {
                let wait = WITHIN.saturating_sub(now.since(*at)).as_secs();
                return Err(UsedUp { share, retry_after: wait.max(1) });
            }
        }
        let names: Vec<String> = shares.iter().map(|(name, _)| name.clone()).collect();
        for name in &names {
            sent.entry(name.clone()).or_default().push(now);
        }
        Ok(Counted { limit: self, names, at: now })
    }

    /// How many mails of a sender or recipient are counted now.
    pub fn sent_by(&self, name: &str, now: Timestamp) -> usize {
        let sent = self.sent();
        let all = sent.get(name).into_iter().flatten();
        all.filter(|at| now.since(**at) < WITHIN).count()
    }

    fn sent(&self) -> MutexGuard<'_, HashMap<String, Vec<Timestamp>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted<'_> {
    /// Keeps the count: the mail is on its way.
    pub fn was_sent(mut self) {
        self.names.clear();
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut sent = self.limit.sent();
        for name in &self.names {
            let Some(all) = sent.get_mut(name) else { continue };
            if let Some(mine) = all.iter().position(|at| *at == self.at) {
                all.remove(mine);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_counts_for_all_or_for_none_and_for_an_hour() {
        let limit = MailLimit::default();
        let shares = |to: &str| [("by/ada".to_owned(), 2), (format!("to/{to}"), 1)];
        let send = |to: &str, second: i64| {
            let counted = limit.count(&shares(to), Timestamp::from_millis(second * 1000));
            counted.map(Counted::was_sent).map_err(|used| (used.share, used.retry_after))
        };
        assert_eq!(send("bob", 0), Ok(()));
        assert_eq!(send("bob", 10), Err((1, 3590)));
        drop(limit.count(&shares("eve"), Timestamp::from_millis(20_000)).unwrap());
        assert_eq!(send("eve", 20), Ok(()));
        assert_eq!(send("eva", 30), Err((0, 3570)));
        assert_eq!(send("bob", 3600), Ok(()));
        assert_eq!(send("eva", 3610), Err((0, 10)));
    }
}
