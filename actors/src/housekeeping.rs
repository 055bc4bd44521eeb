//! What nobody asks for and somebody must do: forgetting what has ended.

use crate::{
    accounts::Session,
    artifacts::{self, Artifacts},
    backups::{self, Backups},
    deployments::{self, Deployments},
    image_builds::{self, ImageBuilds},
    instances::{self, Instances, metrics::Hour},
    platform::Platform,
    replay::Replay,
    runtime::{
        guard::Guard,
        handle::Handle,
        resource::{Kept, Resource},
    },
    world::Owners,
};
use actix::prelude::*;
use contract::Timestamp;
use std::time::Duration;
use store::{Change, Record, StoreError};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(20);
/// What it takes at a time.
const BATCH: usize = 500;

/// Sweeps what has ended, again and again.
pub struct Housekeeper {
    platform: Platform,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Sweep;

impl Housekeeper {
    /// Starts it on this thread's arbiter.
    pub fn start(platform: Platform) -> Addr<Housekeeper> {
        let clock = platform.world.ports.clock;
        let health = platform.world.registry.add("housekeeper", None, 1, clock.now());
        Guard::start(Housekeeper { platform }, Default::default(), health, clock)
    }
}

impl Actor for Housekeeper {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.notify(Sweep);
        ctx.run_interval(EVERY, |_, ctx| ctx.notify(Sweep));
    }
}

impl Supervised for Housekeeper {}

impl Handler<Sweep> for Housekeeper {
    type Result = AtomicResponse<Self, ()>;
    fn handle(&mut self, _: Sweep, _: &mut Self::Context) -> Self::Result {
        let platform = self.platform.clone();
        AtomicResponse::new(Box::pin(async move { sweep(&platform).await }.into_actor(self)))
    }
}

/// One round: limiter buckets, ended sessions and stored replies, uploads whose bytes never came or
/// cannot be verified, instances in a state that should have ended.
pub async fn sweep(platform: &Platform) {
    platform.gate.limiter.forget_idle();
    let now = platform.world.ports.clock.now();
    for done in [
        forget::<Session>(platform, now, |s| s.expires_at).await,
        forget::<Replay>(platform, now, |r| r.expires_at).await,
        forget::<Hour>(platform, now, |h| h.expires_at).await,
        expire::<Artifacts>(
            platform,
            now,
            |owners| &owners.artifacts,
            || artifacts::Command::Expire,
        )
        .await,
        expire::<Deployments>(
            platform,
            now,
            |owners| &owners.deployments,
            || deployments::Command::Overdue,
        )
        .await,
        expire::<Backups>(platform, now, |owners| &owners.backups, || backups::Command::Overdue)
            .await,
        expire::<ImageBuilds>(
            platform,
            now,
            |owners| &owners.image_builds,
            || image_builds::Command::Overdue,
        )
        .await,
        backups::run_due(&platform.world).await,
        expire::<Instances>(
            platform,
            now,
            |owners| &owners.instances,
            || instances::Command::Overdue,
        )
        .await,
    ] {
        if let Err(e) = done {
            tracing::warn!(error = %e, "a sweep was not finished; it goes on in a moment");
        }
    }
}

/// Removes the records that are due.
async fn forget<R: Record>(
    platform: &Platform,
    now: Timestamp,
    ends: fn(&R) -> Timestamp,
) -> Result<(), StoreError> {
    let store = &platform.world.store;
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
async fn expire<R: Resource>(
    platform: &Platform,
    now: Timestamp,
    door: fn(&Owners) -> &Handle<R>,
    command: fn() -> R::Command,
) -> Result<(), StoreError> {
    // All at once: some may be parked and stay due.
    let due = platform.world.store.before::<Kept<R>>("due/", &moment(now), usize::MAX)?;
    let Ok(owners) = platform.owners() else { return Ok(()) };
    for id in due.iter().filter_map(|key| key.parse::<R::Id>().ok()) {
        if let Err(fault) = door(owners).ask_if_there(id, command()).await {
            tracing::warn!(%id, error = %fault, "its time is over, and it was not told");
        }
    }
    Ok(())
}

/// As index entries spell a moment.
fn moment(at: Timestamp) -> String {
    format!("{:013}", at.as_millis().max(0))
}
