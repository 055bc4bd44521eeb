//! A supervisor that survives panics. `actix::Supervisor` restarts only an actor that stops itself;
//! a panic kills the supervisor, the actor and all messages in the mailbox.

use super::{backoff::Backoff, clock::Clock, health::Health};
use actix::{dev::ContextFut, prelude::*};
use contract::Timestamp;
use futures_util::future::BoxFuture;
use std::{
    any::Any,
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, ready},
    time::Duration,
};

/// How many crashes an actor is allowed, and how long the guard pauses before a restart.
#[derive(Debug, Clone, Copy)]
pub struct Intensity {
    /// The guard gives the actor up after more crashes than this `within` the window.
    pub crashes: usize,
    pub within: Duration,
    /// The pauses before the restarts.
    pub backoff: Backoff,
}

impl Default for Intensity {
    fn default() -> Self {
        Intensity {
            crashes: 5,
            within: Duration::from_secs(60),
            backoff: Backoff { first: Duration::from_millis(10), longest: Duration::from_secs(5) },
        }
    }
}

/// Polls the future of the actor under `catch_unwind`.
///
/// After a panic the guard keeps that future, so the mailbox survives. `ContextFut::restart` drops
/// the futures that the actor spawned, and calls `restarting`, where the actor must clear its
/// memory, and then `started`, where the actor reads the store again.
pub struct Guard<A: Supervised + Actor<Context = Context<A>>> {
    actor: Pin<Box<ContextFut<A, Context<A>>>>,
    pause: Option<BoxFuture<'static, ()>>,
    recent: VecDeque<Timestamp>,
    intensity: Intensity,
    health: Arc<Health>,
    clock: Clock,
}

impl<A: Supervised + Actor<Context = Context<A>>> Guard<A> {
    /// Starts an actor on this thread's arbiter.
    pub fn start(actor: A, intensity: Intensity, health: Arc<Health>, clock: Clock) -> Addr<A> {
        let ctx = Context::new();
        let addr = ctx.address();
        let actor = Box::pin(ctx.into_future(actor));
        health.started();
        actix_rt::spawn(Guard {
            actor,
            pause: None,
            recent: VecDeque::new(),
            intensity,
            health,
            clock,
        });
        addr
    }

    fn attempt<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Result<T, Poll<()>> {
        catch_unwind(AssertUnwindSafe(|| f(self))).map_err(|panic| self.crashed(&message(&*panic)))
    }

    /// Pending: a restart is planned. Ready: too many crashes, the guard gives the actor up.
    fn crashed(&mut self, why: &str) -> Poll<()> {
        let now = self.clock.now();
        self.recent.push_back(now);
        self.recent.retain(|at| now.since(*at) <= self.intensity.within);
        self.health.crashed(now, why);
        tracing::error!(
            actor = self.health.id(),
            crashes = self.recent.len(),
            why,
            "an actor panicked"
        );
        if self.recent.len() > self.intensity.crashes {
            self.health.gave_up();
            tracing::error!(actor = self.health.id(), "an actor panicked too often and is parked");
            return Poll::Ready(());
        }
        let before = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).saturating_sub(1);
        self.pause = Some(self.clock.sleep(self.intensity.backoff.pause(before)));
        Poll::Pending
    }
}

impl<A: Supervised + Actor<Context = Context<A>>> Future for Guard<A> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
                match self.attempt(|guard| guard.actor.restart()) {
                    Ok(true) => self.health.restarted(),
                    // No address of the actor is left, or the guard gave the actor up.
                    Ok(false) | Err(Poll::Ready(())) => return Poll::Ready(()),
                    Err(Poll::Pending) => continue,
                }
            }
            match self.attempt(|guard| guard.actor.as_mut().poll(cx)) {
                Ok(done) => return done,
                Err(Poll::Ready(())) => return Poll::Ready(()),
                Err(Poll::Pending) => {}
            }
        }
    }
}

/// Without this, a guard that is dropped with its runtime polls the actor once more. `started` and
/// `stopped` would run without a reactor, and a panic during the drop aborts the process.
impl<A: Supervised + Actor<Context = Context<A>>> Drop for Guard<A> {
    fn drop(&mut self) {
        self.actor.ctx().terminate();
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}
