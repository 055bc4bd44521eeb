//! A clock for tests.

use super::clock::{Clock, Time, Uptime};
use contract::Timestamp;
use futures_util::future::{BoxFuture, ready};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// A clock that stands still until it is moved. Clones are the same clock.
#[derive(Clone)]
pub struct ManualClock(Arc<Inner>);

struct Inner {
    /// Milliseconds since the epoch. Written only while `sleepers` is locked.
    now: AtomicI64,
    sleepers: Mutex<Sleepers>,
}

#[derive(Default)]
struct Sleepers {
    /// By wake-up time in milliseconds. The number makes the key unique.
    waiting: BTreeMap<(i64, u64), oneshot::Sender<()>>,
    next: u64,
}

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        let now = AtomicI64::new(now.as_millis());
        ManualClock(Arc::new(Inner { now, sleepers: Mutex::default() }))
    }

    pub fn port(&self) -> Clock {
        Clock::new(self.clone())
    }

    /// Moves the time, and wakes all sleepers that are due by then.
    pub fn advance(&self, by: Duration) {
        let mut sleepers = self.sleepers();
        let now = (self.now() + by).as_millis();
        self.0.now.store(now, SeqCst);
        let later = sleepers.waiting.split_off(&(now + 1, 0));
        for (_, woken) in std::mem::replace(&mut sleepers.waiting, later) {
            let _ = woken.send(());
        }
    }

    /// Moves the time to the next sleeper that is due, at most by `at_most`.
    pub fn advance_to_next(&self, at_most: Duration) {
        let next = {
            let mut sleepers = self.sleepers();
            sleepers.waiting.retain(|_, woken| !woken.is_closed());
            sleepers.waiting.keys().next().map(|(moment, _)| Timestamp::from_millis(*moment))
        };
        self.advance(next.map_or(at_most, |next| next.since(self.now()).min(at_most)));
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.now.load(SeqCst))
    }

    fn uptime(&self) -> Option<Uptime> {
        Some(Uptime { boot: "manual".into(), ms: self.now().as_millis() })
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let mut sleepers = self.sleepers();
        let (now, until) = (self.now(), self.now() + time);
        if until <= now {
            return Box::pin(ready(()));
        }
        let (woken, waits) = oneshot::channel();
        let number = sleepers.next;
        sleepers.next += 1;
        sleepers.waiting.insert((until.as_millis(), number), woken);
        Box::pin(async move {
            let _ = waits.await;
        })
    }
}
