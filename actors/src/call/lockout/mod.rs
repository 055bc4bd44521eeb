//! Limits the failed sign-ins for one e-mail within 15 minutes. After ten from one address, that
//! address waits. After twenty from all unknown addresses together, all unknown addresses wait. A
//! known address, from which the account signed in before, has only its own limit of ten.

use contract::{Fault, Timestamp};
use std::{
    collections::HashMap,
    net::IpAddr,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Failures after which one guesser waits.
const MOST_FAILURES: usize = 10;
/// Failures of all unknown addresses together after which they wait.
const MOST_OF_STRANGERS: usize = 20;
const WITHIN: Duration = Duration::from_secs(15 * 60);
/// The most targets watched at a time. Beyond it, targets without a recent attempt are forgotten.
const MOST_WATCHED: usize = 100_000;

/// Who tries a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guesser {
    /// An address from which the account signed in before.
    Known(IpAddr),
    /// Any other address. Those of one IPv6 site are one guesser.
    Stranger(IpAddr),
    /// A signed-in user who is asked for the current password, from any address.
    Session,
}

/// The attempts on each target: an e-mail, or the id of a signed-in user.
#[derive(Default)]
pub struct Lockout {
    watched: Mutex<HashMap<String, Vec<Attempt>>>,
    /// Notified when an attempt ends.
    ended: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Attempt {
    by: Guesser,
    at: Timestamp,
    /// Whether the password is still being checked.
    open: bool,
}

/// An attempt under way. When dropped, it counts as failed, unless [`Guess::was_right`] or
/// [`Guess::was_none`] was called.
pub struct Guess<'a> {
    lockout: &'a Lockout,
    target: String,
    attempt: Attempt,
    failed: bool,
}

impl Lockout {
    /// Begins an attempt, before the password is checked. Refuses it if too many attempts failed.
    /// Waits while the attempts under way may use up the failures that are left, so that concurrent
    /// attempts are judged like consecutive ones.
    pub async fn begin(
        &self,
        target: &str,
        by: Guesser,
        now: Timestamp,
    ) -> Result<Guess<'_>, Fault> {
        loop {
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            let attempt = Attempt { by, at: now, open: true };
            match self.admit(target, attempt) {
                Verdict::Pass => {
                    return Ok(Guess {
                        lockout: self,
                        target: target.into(),
                        attempt,
                        failed: true,
                    });
                }
                Verdict::Wait => ended.await,
                Verdict::Locked(seconds) => return Err(locked(by, seconds)),
                Verdict::AllLocked(seconds) => return Err(all_locked(seconds)),
            }
        }
    }

    /// Forgets every failure of a target, after a password reset.
    pub fn forget(&self, target: &str) {
        self.watched().remove(target);
        self.ended.notify_waiters();
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, Vec<Attempt>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, target: &str, attempt: Attempt) -> Verdict {
        let now = attempt.at;
        let mut watched = self.watched();
        if watched.len() >= MOST_WATCHED {
            watched.retain(|_, all| all.last().is_some_and(|last| now.since(last.at) < WITHIN));
            // So many recent targets are an attack on this list itself. Each cost the hashing of a
            // password; scanning them at every sign-in would cost more than forgetting them.
            if watched.len() >= MOST_WATCHED {
                watched.clear();
            }
        }
        let attempts = watched.entry(target.to_owned()).or_default();
        attempts.retain(|earlier| earlier.open || now.since(earlier.at) < WITHIN);
        let verdict = judge(attempts, attempt.by, now);
        if verdict == Verdict::Pass {
            attempts.push(attempt);
        }
        verdict
    }
}

impl Guess<'_> {
    /// The password was right. The earlier failures of this guesser are forgotten.
    pub fn was_right(mut self) {
        self.failed = false;
        let mut watched = self.lockout.watched();
        if let Some(attempts) = watched.get_mut(&self.target) {
            attempts.retain(|earlier| earlier.by != self.attempt.by || earlier.open);
        }
    }

    /// The password was not checked.
    pub fn was_none(mut self) {
        self.failed = false;
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        let mut watched = self.lockout.watched();
        if let Some(attempts) = watched.get_mut(&self.target) {
            if let Some(at) = attempts.iter().position(|earlier| *earlier == self.attempt) {
                let mut attempt = attempts.remove(at);
                attempt.open = false;
                attempts.extend(self.failed.then_some(attempt));
            }
            if attempts.is_empty() {
                watched.remove(&self.target);
            }
        }
        drop(watched);
        self.lockout.ended.notify_waiters();
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Pass,
    /// The attempts under way may use up the failures that are left.
    Wait,
    /// This guesser waits for so many seconds.
    Locked(u64),
    /// Every unknown address waits for so many seconds.
    AllLocked(u64),
}

fn judge(attempts: &[Attempt], by: Guesser, now: Timestamp) -> Verdict {
    let own = |earlier: &&Attempt| earlier.by == by;
    let strange = |earlier: &&Attempt| matches!(earlier.by, Guesser::Stranger(_));
    if let Some(seconds) = until_free(attempts.iter().filter(own), MOST_FAILURES, now) {
        return Verdict::Locked(seconds);
    }
    let is_stranger = matches!(by, Guesser::Stranger(_));
    if is_stranger
        && let Some(seconds) = until_free(attempts.iter().filter(strange), MOST_OF_STRANGERS, now)
    {
        return Verdict::AllLocked(seconds);
    }
    let full = attempts.iter().filter(own).count() >= MOST_FAILURES
        || is_stranger && attempts.iter().filter(strange).count() >= MOST_OF_STRANGERS;
    if full { Verdict::Wait } else { Verdict::Pass }
}

/// Seconds until fewer than `most` of the attempts failed in the last 15 minutes; `None` if that is
/// so already.
fn until_free<'a>(
    attempts: impl Iterator<Item = &'a Attempt>,
    most: usize,
    now: Timestamp,
) -> Option<u64> {
    let mut failed: Vec<_> = attempts.filter(|a| !a.open).map(|a| a.at).collect();
    failed.sort_unstable();
    let at = failed.len().checked_sub(most).and_then(|first| failed.get(first))?;
    Some(WITHIN.saturating_sub(now.since(*at)).as_secs().max(1))
}

fn locked(by: Guesser, retry_after: u64) -> Fault {
    let what = match by {
        Guesser::Session => "too many wrong current passwords",
        Guesser::Known(_) | Guesser::Stranger(_) => {
            "too many failed sign-ins for this e-mail from your address"
        }
    };
    Fault::TooMany { what: what.into(), retry_after }
}

fn all_locked(retry_after: u64) -> Fault {
    let what = "too many failed sign-ins for this e-mail from new addresses; \
        an address that signed in before still can";
    Fault::TooMany { what: what.into(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const EMAIL: &str = "ada@example.com";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn stranger(last: u8) -> Guesser {
        Guesser::Stranger(IpAddr::from([10, 0, 0, last]))
    }

    /// Fails at this second; returns the seconds to wait if the attempt is refused.
    fn fail(lockout: &Lockout, by: Guesser, second: i64) -> Result<(), u64> {
        match lockout.begin(EMAIL, by, at(second)).now_or_never().unwrap() {
            Ok(guess) => {
                drop(guess);
                Ok(())
            }
            Err(fault) => Err(fault.retry_after().unwrap()),
        }
    }

    #[test]
    fn the_eleventh_waits_until_the_first_is_15_minutes_old() {
        let lockout = Lockout::default();
        for second in 0..10 {
            assert_eq!(fail(&lockout, stranger(1), second), Ok(()));
        }
        assert_eq!(fail(&lockout, stranger(1), 10), Err(890));
        assert_eq!(fail(&lockout, stranger(1), 899), Err(1));
        assert_eq!(fail(&lockout, stranger(1), 900), Ok(()));
        assert_eq!(fail(&lockout, stranger(1), 900), Err(1));
        lockout.forget(EMAIL);
        assert_eq!(fail(&lockout, stranger(1), 900), Ok(()));
    }

    #[test]
    fn strangers_share_twenty_and_a_known_address_has_its_own_ten() {
        let lockout = Lockout::default();
        let known = Guesser::Known(IpAddr::from([10, 0, 0, 1]));
        for n in 0..20 {
            assert_eq!(fail(&lockout, stranger(100 + n), i64::from(n)), Ok(()));
        }
        assert_eq!(fail(&lockout, stranger(2), 20), Err(880));
        for second in 20..30 {
            assert_eq!(fail(&lockout, known, second), Ok(()));
        }
        assert_eq!(fail(&lockout, known, 30), Err(890));
        let other = Guesser::Known(IpAddr::from([10, 0, 0, 2]));
        let guess = lockout.begin(EMAIL, other, at(30)).now_or_never().unwrap();
        guess.unwrap().was_right();
        assert_eq!(fail(&lockout, stranger(2), 31), Err(869), "that says nothing of strangers");
    }

    #[test]
    fn attempts_under_way_are_waited_for() {
        let lockout = Lockout::default();
        let begin = || lockout.begin(EMAIL, stranger(1), at(0));
        let mut open: Vec<_> = (0..10).map(|_| begin().now_or_never().unwrap().unwrap()).collect();
        let mut eleventh = Box::pin(begin());
        assert!((&mut eleventh).now_or_never().is_none(), "it waits");
        open.pop().unwrap().was_none();
        let eleventh = eleventh.now_or_never().unwrap().unwrap();
        let mut twelfth = Box::pin(begin());
        assert!((&mut twelfth).now_or_never().is_none());
        eleventh.was_right();
        open.clear();
        assert!(twelfth.now_or_never().unwrap().is_ok(), "nine failed, and one was right");
        assert_eq!(lockout.watched().get(EMAIL).unwrap().len(), 10);
        assert_eq!(fail(&lockout, stranger(1), 1), Err(899));
    }
}
