//! What nobody asks for and somebody must do: forgetting what has ended.

use crate::{
    call::idempotency::Replay,
    kinds::{
        accounts::Session,
        artifacts, backups, deployments, image_builds,
        instances::{self, metrics::Hour},
    },
    platform::Platform,
    runtime::{
        deadline::moment,
        guard::Guard,
        handle::Handle,
        resource::{Kept, Resource},
    },
};
use actix::prelude::*;
use contract::Timestamp;
use std::time::Duration;
use store::{Change, Record, Store, StoreError};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(20);
/// What it takes at a time.
const BATCH: usize = 500;

/// Sweeps what has ended, again and again.
pub struct Housekeeper {
    platform: Platform,
}

impl Housekeeper {
    /// Starts it on this thread's arbiter.
    pub fn start(platform: Platform) -> Addr<Housekeeper> {
        let clock = platform.world.ports.clock.clone();
        let health = platform.world.registry.add("housekeeper", None, 1, clock.now());
        Guard::start(Housekeeper { platform }, Default::default(), health, clock)
    }
}

impl Actor for Housekeeper {
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

impl Supervised for Housekeeper {}

/// One round: limiter buckets, ended sessions and stored replies, uploads whose bytes never came or
/// cannot be verified, instances in a state that should have ended.
pub async fn sweep(platform: &Platform) {
    platform.gate.limiter.forget_idle();
    let (world, now) = (&platform.world, platform.world.ports.clock.now());
    let Ok(owners) = world.owners() else { return };
    let store = &world.store;
    for done in [
        forget::<Session>(store, now, |s| s.expires_at).await,
        forget::<Replay>(store, now, |r| r.expires_at).await,
        forget::<Hour>(store, now, |h| h.expires_at).await,
        tell(store, now, &owners.artifacts, artifacts::Command::Expire).await,
        tell(store, now, &owners.instances, instances::Command::Overdue).await,
        tell(store, now, &owners.deployments, deployments::Command::Overdue).await,
        tell(store, now, &owners.backups, backups::Command::Overdue).await,
        tell(store, now, &owners.image_builds, image_builds::Command::Overdue).await,
        backups::run_due(world).await,
    ] {
        if let Err(e) = done {
            tracing::warn!(error = %e, "a sweep was not finished; it goes on in a moment");
        }
    }
}

/// Removes the records that are due.
async fn forget<R: Record>(
    store: &Store,
    now: Timestamp,
    ends: fn(&R) -> Timestamp,
) -> Result<(), StoreError> {
    loop {
        let due = store.before::<R>("due/", &moment(now), BATCH)?;
        for key in &due {
            if let Some(stored) = store.get::<R>(key)?.filter(|stored| ends(&stored.record) <= now)
            {
                match store.commit(Change::new().remove(key, stored.as_ref())).await {
                    // used meanwhile: it has a new end
                    Ok(()) | Err(StoreError::Stale { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        if due.len() < BATCH {
            return Ok(());
        }
    }
}

/// Tells those whose time is over.
async fn tell<R: Resource>(
    store: &Store,
    now: Timestamp,
    owners: &Handle<R>,
    command: R::Command,
) -> Result<(), StoreError> {
    // All at once: some may be parked and stay due.
    let due = store.before::<Kept<R>>("due/", &moment(now), usize::MAX)?;
    for id in due.iter().filter_map(|key| key.parse::<R::Id>().ok()) {
        if let Err(fault) = owners.ask_if_there(id, command.clone()).await {
            tracing::warn!(%id, error = %fault, "its time is over, and it was not told");
        }
    }
    Ok(())
}
