//! Limits the failed sign-ins for one e-mail within 15 minutes. After ten from one address, that
//! address waits. After twenty from all unknown addresses together, all unknown addresses wait. A
//! known address, from which the account signed in before, has only its own limit of ten.
//!
//! An attempt is written before the password is checked, so no guess is forgotten, whichever process checks it
//! and whether it goes on.

mod attempts;

pub use attempts::Attempts;

use crate::{
    kinds::people::accounts::session::keyed_digest,
    ports::random::Random,
    runtime::{clock::Clock, store::Store},
};
use attempts::{Attempt, Ended, Verdict};
use contract::{EventId, Fault};
use std::{net::IpAddr, pin::pin, time::Duration};
use store::Change;
use tokio::sync::Notify;

/// The pause before it is looked again whether attempts have ended that another process may have begun.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

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
pub struct Lockout {
    store: Store,
    clock: Clock,
    random: Random,
    /// Neither e-mails nor addresses can be read from the store without it.
    signing_key: [u8; 32],
    /// Notified when an attempt of this process ends.
    ended: Notify,
}

/// An attempt under way. When dropped, it counts as failed, unless [`Guess::was_right`] or
/// [`Guess::was_none`] was called.
pub struct Guess<'a> {
    lockout: &'a Lockout,
    key: String,
    id: EventId,
    ended: fn(EventId) -> Ended,
}

impl Lockout {
    pub fn new(store: Store, clock: Clock, random: Random, signing_key: [u8; 32]) -> Self {
        Lockout { store, clock, random, signing_key, ended: Notify::new() }
    }

    /// Begins an attempt, before the password is checked. Refuses it if too many attempts failed.
    /// Waits while the attempts under way may use up the failures that are left, so that concurrent
    /// attempts are judged like consecutive ones.
    pub async fn begin(&self, target: &str, by: Guesser) -> Result<Guess<'_>, Fault> {
        let (key, mut attempt) = (self.key(target), self.attempt(target, by));
        let id = attempt.id;
        loop {
            attempt.at = self.clock.now();
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            let seen = self.store.get::<Attempts>(&key)?;
            let before = seen.as_deref().map(|seen| (**seen).clone()).unwrap_or_default();
            match before.judge(&attempt) {
                Verdict::Pass => {
                    let after = before.and(attempt.clone());
                    let begun = Change::new().replace::<Attempts>(&key, seen.as_deref(), after);
                    match self.store.commit(begun).await {
                        Ok(()) => {
                            return Ok(Guess { lockout: self, key, id, ended: Ended::Failed });
                        }
                        // Another attempt on the target began or ended first.
                        Err(Fault::Stale) => {}
                        Err(fault) => return Err(fault),
                    }
                }
                Verdict::Wait => drop(self.clock.limit(LOOKS_EVERY, ended).await),
                Verdict::Locked(seconds) => return Err(locked(by, seconds)),
                Verdict::AllLocked(seconds) => return Err(all_locked(seconds)),
            }
        }
    }

    /// Forgets every failure of a target, after a password reset.
    pub async fn forget(&self, target: &str) -> Result<(), Fault> {
        let forgotten = Change::new().merge::<Attempts>(&self.key(target), Ended::All);
        self.store.commit(forgotten).await?;
        self.ended.notify_waiters();
        Ok(())
    }

    fn key(&self, target: &str) -> String {
        keyed_digest(&self.signing_key, &format!("sign-in\n{target}"))
    }

    fn attempt(&self, target: &str, by: Guesser) -> Attempt {
        let who = keyed_digest(&self.signing_key, &format!("guesser\n{target}\n{by:?}"));
        let is_strange = matches!(by, Guesser::Stranger(_));
        let at = self.clock.now();
        Attempt { id: self.random.id(at), by: who, is_strange, at, is_open: true }
    }
}

impl Guess<'_> {
    /// The password was right. The earlier failures of this guesser are forgotten.
    pub fn was_right(mut self) {
        self.ended = Ended::Right;
    }

    /// The password was not checked.
    pub fn was_none(mut self) {
        self.ended = Ended::Unchecked;
    }
}

impl Drop for Guess<'_> {
    fn drop(&mut self) {
        let ended = (self.ended)(self.id);
        self.lockout.store.note(Change::new().merge::<Attempts>(&self.key, ended));
        self.lockout.ended.notify_waiters();
    }
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
    use crate::runtime::manual_clock::ManualClock;
    use contract::Timestamp;
    use futures_util::future::{Either, join_all, select};
    use store::Record;

    /// Two processes on one store count together, and what one of them began before it ended counts too.
    #[test]
    fn sixteen_at_once_in_two_processes_guess_ten_times() {
        actix_rt::System::new().block_on(guess_sixteen_times());
    }

    async fn guess_sixteen_times() {
        let store = Store::from(store::Store::in_memory(&[Attempts::TREE]).unwrap());
        let now = Timestamp::from_millis(1_000_000);
        let clock = ManualClock::new(now);
        let process = || Lockout::new(store.clone(), clock.port(), Random::default(), [7; 32]);
        let (one, two) = (process(), process());
        let by = Guesser::Stranger(IpAddr::from([10, 0, 0, 1]));
        let guesses = (0..16).map(async |n| {
            let process = if n % 2 == 0 { &one } else { &two };
            let guess = process.begin("ada@example.com", by).await?;
            actix_rt::task::yield_now().await;
            drop(guess);
            Ok::<(), Fault>(())
        });
        let time_passes = pin!(async {
            loop {
                #[allow(clippy::disallowed_methods, reason = "the store's thread is waited for")]
                tokio::time::sleep(Duration::from_millis(1)).await;
                clock.advance_to_next(LOOKS_EVERY);
            }
        });
        let guesses = match select(join_all(guesses), time_passes).await {
            Either::Left((guesses, _)) => guesses,
            Either::Right(((), _)) => panic!("time ended"),
        };
        assert_eq!(guesses.into_iter().filter(Result::is_ok).count(), 10);
        drop(one);
        let later = process();
        let locked = later.begin("ada@example.com", by).await.err().unwrap();
        let retry_after = locked.retry_after().unwrap();
        assert!((800..=900).contains(&retry_after), "{retry_after}");
        later.forget("ada@example.com").await.unwrap();
        later.begin("ada@example.com", by).await.unwrap().was_right();
        store.barrier().await.unwrap();
        assert_eq!(store.whole::<Attempts>(None).keys().count(), 0);
    }
}
