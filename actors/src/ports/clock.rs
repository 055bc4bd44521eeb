//! The time: what it is, and waiting for later. Pauses, and limits of work outside, go by this
//! port, so that tests can move it. Waits for this process itself (its threads, its disk) are
//! limited by the machine's own time: there a clock that is moved would cut real work short.

use contract::Timestamp;
use futures_util::future::{BoxFuture, Either, ready, select};
use std::{pin::pin, sync::Arc, time::Duration};

/// A source of time.
pub trait Time: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
    /// Ends when so much time has passed.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The clock that everything goes by. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Time>);

impl Clock {
    /// A clock of this time.
    pub fn new(time: impl Time) -> Self {
        Clock(Arc::new(time))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Ends when so much time has passed.
    pub fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        if time.is_zero() { Box::pin(ready(())) } else { self.0.sleep(time) }
    }

    /// What the work comes to; `None` where it does not end within this time. It is dropped then.
    pub async fn limit<F: Future>(&self, within: Duration, work: F) -> Option<F::Output> {
        match select(pin!(work), self.sleep(within)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => None,
        }
    }
}
