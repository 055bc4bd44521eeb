//! The clock. Pauses, and the limits of work outside this process, use this port, so that tests can
//! move the time. The limits of work inside this process (threads, disk) use the machine's time,
//! because a clock that a test moves would cut real work short.

use contract::Timestamp;
use futures_util::future::{BoxFuture, Either, ready, select};
use serde::{Deserialize, Serialize};
use std::{pin::pin, sync::Arc, time::Duration};

/// How long a machine runs, by a clock that nobody sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// Another one after each start of the machine.
    pub boot: String,
    /// Milliseconds since the start of the machine, with those that it slept.
    pub ms: i64,
}

/// A source of time.
pub trait Time: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    /// `None`: the system does not tell.
    fn uptime(&self) -> Option<Uptime>;
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The clock of the platform. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Time>);

impl Clock {
    pub fn new(time: impl Time) -> Self {
        Clock(Arc::new(time))
    }

    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    pub fn uptime(&self) -> Option<Uptime> {
        self.0.uptime()
    }

    /// Returns at once if `time` is zero.
    pub fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        if time.is_zero() { Box::pin(ready(())) } else { self.0.sleep(time) }
    }

    /// Runs the work. `None`: the work did not end within this time, and is dropped.
    pub async fn limit<F: Future>(&self, within: Duration, work: F) -> Option<F::Output> {
        match select(pin!(work), self.sleep(within)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => None,
        }
    }
}
