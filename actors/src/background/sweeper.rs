//! The sweeper: removes expired records and what was kept long enough, and tells owners when the time of their
//! work has come.

use super::retention;
use crate::{
    call::platform::Platform,
    kinds::{
        table::{self, KindVisitor, Owned},
        world::World,
    },
    records,
    runtime::{
        clock_watch,
        entries::{self, Deadline},
        guard::Guard,
        resource::{Input, Moment, removes_for_good},
    },
};
use actix::prelude::*;
use contract::{Fault, Timestamp};
use futures_util::{
    StreamExt,
    future::{LocalBoxFuture, join_all, join3, ready},
    stream,
};
use std::{convert::Infallible, sync::Arc, time::Duration};

/// The pause between two sweeps.
const EVERY: Duration = Duration::from_secs(20);
/// The pause between two removals of what was kept long enough.
const RETENTION_EVERY: Duration = Duration::from_secs(600);
/// How many resources of a kind are told at the same time.
const AT_A_TIME: usize = 16;

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
            let clock = &platform.world.ports.clock;
            while platform.world.owners().is_err() {
                clock.sleep(EVERY).await;
            }
            // Each kind by itself: many resources of one that are due do not delay the others.
            let kinds = sweeps(&platform.world).into_iter().map(async |tell| {
                loop {
                    log(tell(clock.now()).await);
                    clock.sleep(EVERY).await;
                }
            });
            let expired = async {
                loop {
                    forget_expired(&platform).await;
                    clock.sleep(EVERY).await;
                }
            };
            let retention = async {
                loop {
                    apply_retention(&platform.world).await;
                    clock.sleep(RETENTION_EVERY).await;
                }
            };
            join3(join_all(kinds), expired, retention).await;
        };
        ctx.spawn(sweeps.into_actor(self));
    }
}

impl Supervised for Sweeper {}

/// One sweep of everything. After a jump of the clock, nothing is removed.
pub async fn sweep(platform: &Platform) {
    let now = platform.world.ports.clock.now();
    let kinds = sweeps(&platform.world).into_iter();
    let kinds = join_all(kinds.map(async |tell| log(tell(now).await)));
    join3(kinds, forget_expired(platform), apply_retention(&platform.world)).await;
}

async fn apply_retention(world: &Arc<World>) {
    if !world.store.does("retention") {
        return;
    }
    retention::apply(world).await.into_iter().for_each(|fault| log(Err(fault)));
}

/// Drops idle rate-limit buckets, and removes the records whose time is over.
async fn forget_expired(platform: &Platform) {
    platform.authn.limiter.forget_idle();
    let world = &platform.world;
    if !world.store.does("removal of expired records") {
        return;
    }
    let (store, now) = (&world.store, world.ports.clock.now());
    match clock_watch::look(store, &world.ports.clock).await {
        Ok(None) => {
            let faults = records::forget_expired(store, now).await;
            faults.into_iter().for_each(|fault| log(Err(fault)));
        }
        Ok(Some(_)) => {}
        Err(fault) => log(Err(fault)),
    }
    tracing::debug!("a sweep of expired records ended");
}

fn log(done: Result<(), Fault>) {
    if let Err(e) = done {
        tracing::warn!(error = %e, "a part of a sweep failed; the next sweep tries again");
    }
}

/// For each kind: what tells the owners whose time has come.
fn sweeps(world: &World) -> Vec<Sweep<'_>> {
    let mut sweeps = Sweeps { world, all: Vec::new() };
    let Ok(()) = table::visit(&mut sweeps);
    sweeps.all
}

struct Sweeps<'a> {
    world: &'a World,
    all: Vec<Sweep<'a>>,
}

impl KindVisitor for Sweeps<'_> {
    type Error = Infallible;

    fn visit<R: Owned>(&mut self) -> Result<(), Infallible> {
        let world = self.world;
        self.all.push(Box::new(move |now| Box::pin(notify_overdue::<R>(world, now))));
        Ok(())
    }
}

/// Tells the owners of a kind's resources whose work begins, or is over, by a time.
type Sweep<'a> = Box<dyn Fn(Timestamp) -> LocalBoxFuture<'a, Result<(), Fault>> + 'a>;

async fn notify_overdue<R: Owned>(world: &World, now: Timestamp) -> Result<(), Fault> {
    let store = &world.store;
    let is_certain = matches!(clock_watch::peek(store, &world.ports.clock), Ok(None));
    let mut due = store.before::<R>(&Deadline(now));
    while let Some(ids) = due.next_keys().await? {
        let told = stream::iter(ids).map(|id| notify::<R>(world, (now, is_certain), id));
        told.buffer_unordered(AT_A_TIME).for_each(ready).await;
    }
    Ok(())
}

/// Tells the owner of a resource that its time has come. Unless the clock is certain, a resource that would
/// be removed is not told. A record that cannot be read is passed over.
async fn notify<R: Owned>(world: &World, (now, is_certain): (Timestamp, bool), id: R::Key) {
    if world.store.lease::<R>(&id).is_none() {
        return;
    }
    let Ok(Some(seen)) = world.store.get::<R>(&id) else { return };
    let is_allowed = is_certain || !removes_for_good(&Moment { id, now }, &seen);
    if !is_allowed || entries::due(&seen).is_none_or(|due| due > now) {
        return;
    }
    if let Err(fault) = world.to::<R>(id).tell_if_there(Input::Due).await {
        tracing::warn!(%id, error = %fault, "a resource was not told that its time has come");
    }
}
