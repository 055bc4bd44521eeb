//! The sweeper: removes expired records and tells resources that their deadline has passed.

use crate::{
    call::idempotency::StoredReply,
    kinds::{accounts::Session, instances::metrics::HourlyMetrics},
    platform::Platform,
    runtime::{entries::Deadline, guard::Guard, handle::Handle, resource::Resource, store::Store},
};
use actix::prelude::*;
use contract::{Fault, Timestamp};
use std::time::Duration;
use store::{Change, Record};

/// The pause between two sweeps.
const EVERY: Duration = Duration::from_secs(20);
/// Expired records read at a time.
const BATCH: usize = 500;

pub struct Sweeper {
    platform: Platform,
}

impl Sweeper {
    /// Starts on this thread's arbiter.
    pub fn start(platform: Platform) -> Addr<Sweeper> {
        let clock = platform.world.ports.clock.clone();
        let health = platform.world.registry.add("sweeper", None, 1, clock.now());
        Guard::start(Sweeper { platform }, Default::default(), health, clock)
    }
}

impl Actor for Sweeper {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        let platform = self.platform.clone();
        let sweeps = async move {
            loop {
                sweep(&platform).await;
                platform.world.ports.clock.sleep(EVERY).await;
            }
        };
        ctx.spawn(sweeps.into_actor(self));
    }
}

impl Supervised for Sweeper {}

/// One sweep: drops idle rate-limit buckets, removes expired sessions, stored replies and hourly
/// metrics, and tells resources whose deadline has passed.
pub async fn sweep(platform: &Platform) {
    platform.authn.limiter.forget_idle();
    let (world, now) = (&platform.world, platform.world.ports.clock.now());
    let Ok(owners) = world.owners() else { return };
    let store = &world.store;
    for done in [
        forget::<Session>(store, now, |session| session.expires_at).await,
        forget::<StoredReply>(store, now, |replay| replay.expires_at).await,
        forget::<HourlyMetrics>(store, now, |hour| hour.expires_at).await,
        owners.tell_overdue(store, now).await,
    ] {
        if let Err(e) = done {
            tracing::warn!(error = %e, "a part of a sweep failed; the next sweep tries again");
        }
    }
}

/// Removes the expired records of a kind.
async fn forget<R: Record>(
    store: &Store,
    now: Timestamp,
    ends: fn(&R::Content) -> Timestamp,
) -> Result<(), Fault> {
    loop {
        let due = store.before::<R>(&Deadline(now), BATCH)?;
        for key in &due {
            if let Some(seen) = store.get::<R>(key)?.filter(|seen| ends(seen) <= now) {
                match store.commit(Change::new().remove::<R>(key, &seen)).await {
                    // The record changed meanwhile and expires later.
                    Ok(()) | Err(Fault::Stale) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        if due.len() < BATCH {
            return Ok(());
        }
    }
}

/// Sends the deadline command to each resource of a kind whose deadline has passed.
pub(crate) async fn tell_overdue<R: Resource>(
    store: &Store,
    now: Timestamp,
    owners: &Handle<R>,
) -> Result<(), Fault> {
    // Not in batches: parked resources stay due, and a batch of them would hide the rest.
    for id in store.before::<R>(&Deadline(now), usize::MAX)? {
        let deadline = store.get::<R>(&id)?.and_then(|seen| R::deadline(&seen.state));
        let Some((_, command)) = deadline.filter(|(at, _)| *at <= now) else { continue };
        if let Err(fault) = owners.ask_if_there(id, command).await {
            tracing::warn!(%id, error = %fault, "a resource was not told that its deadline passed");
        }
    }
    Ok(())
}
