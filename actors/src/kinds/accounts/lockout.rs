//! Failed sign-ins. After ten for one e-mail within 15 minutes, strangers wait; an address that
//! the account has signed in from before still gets in.

use contract::{Fault, Timestamp};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

const MOST_FAILURES: usize = 10;
const WITHIN: Duration = Duration::from_secs(15 * 60);
/// E-mails watched at a time. Beyond it those whose time is over are forgotten.
const MOST_WATCHED: usize = 100_000;

/// The failures of each e-mail.
#[derive(Default)]
pub struct Lockout(Mutex<HashMap<String, VecDeque<Timestamp>>>);

impl Lockout {
    /// Before a password is looked at: counts the attempt as failed, so that many at once count
    /// as many. Refuses where there were too many.
    pub fn begin(&self, email: &str, now: Timestamp) -> Result<(), Fault> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= MOST_WATCHED {
            watched.retain(|_, failures| failures.back().is_some_and(|at| now.since(*at) < WITHIN));
            // So many live ones are an attack on this list itself. Each cost a password's hashing;
            // looking through them at every sign-in would cost more than forgetting them.
            if watched.len() >= MOST_WATCHED {
                watched.clear();
            }
        }
        let failures = watched.entry(email.to_owned()).or_default();
        failures.retain(|at| now.since(*at) < WITHIN);
        if failures.len() >= MOST_FAILURES {
            let oldest = failures.front().copied().unwrap_or(now);
            let wait = WITHIN.saturating_sub(now.since(oldest));
            return Err(Fault::RateLimited { retry_after: wait.as_secs().max(1) });
        }
        failures.push_back(now);
        Ok(())
    }

    /// The password was right: nothing failed.
    pub fn succeeded(&self, email: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(email);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_failure_waits_and_a_success_forgets() {
        let lockout = Lockout::default();
        let email = "ada@example.com";
        let at = |s: i64| Timestamp::from_millis(s * 1000);
        for s in 0..10 {
            assert_eq!(lockout.begin(email, at(s)), Ok(()));
        }
        assert_eq!(lockout.begin(email, at(10)), Err(Fault::RateLimited { retry_after: 890 }));
        assert_eq!(lockout.begin(email, at(901)), Ok(()), "the first failure is 15 minutes old");
        lockout.succeeded(email);
        assert_eq!(lockout.begin(email, at(902)), Ok(()));
    }
}
