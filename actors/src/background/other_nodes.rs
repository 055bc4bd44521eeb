//! Hears what other processes did that share the store, and tells those whom it concerns: owners whose records
//! they wrote, and all owners when this process got leases or lost some. Tells others which calls passed here, and how
//! this process is.

use crate::{
    call::{platform::Platform, rate_limit::Exchange},
    functions::operators::nodes,
    kinds::{events::webhooks::outbox::Outgoing, world::World},
    runtime::guard::Guard,
};
use actix::prelude::*;
use contract::Fault;
use std::{sync::Arc, time::Duration};
use store::{Event, Record};

/// The pause before the owners are looked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How often nodes tell each other which calls they let pass, and how they are.
const TELLS_EVERY: Duration = Duration::from_secs(1);

pub struct OtherNodes {
    platform: Platform,
}

impl OtherNodes {
    /// Starts on this thread's arbiter.
    pub fn start(platform: Platform) -> Addr<OtherNodes> {
        let clock = platform.world.ports.clock.clone();
        let health = platform.world.registry.add("otherNodes", None, 1, clock.now());
        Guard::start(OtherNodes { platform }, Default::default(), health, clock)
    }
}

impl Actor for OtherNodes {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        if !self.platform.world.store.is_alone() {
            ctx.spawn(hear(self.platform.world.clone()).into_actor(self));
            ctx.spawn(tell(self.platform.clone()).into_actor(self));
        }
    }
}

impl Supervised for OtherNodes {}

async fn hear(world: Arc<World>) {
    let mut others = world.store.others();
    // Nobody tells what happened before this moment, so all owners look once.
    let mut event = Event::Leases;
    loop {
        while pass_on(&world, &event).await.is_err() {
            world.ports.clock.sleep(AGAIN_AFTER).await;
        }
        event = others.next().await;
    }
}

async fn tell(platform: Platform) {
    let (mut of_calls, mut of_nodes) = (Exchange::default(), nodes::Exchange::default());
    let world = &platform.world;
    loop {
        of_calls.tick(&platform.authn.limiter, &world.store);
        of_nodes.tick(world).await;
        world.ports.clock.sleep(TELLS_EVERY).await;
    }
}

/// Refused while the owners are being started.
async fn pass_on(world: &World, event: &Event) -> Result<(), Fault> {
    let owners = world.owners()?;
    match event {
        Event::Record { kind, .. } if kind == Outgoing::TREE => world.webhooks.news.notify_one(),
        Event::Record { kind, key } => owners.written_by_other(kind, key).await,
        Event::Leases | Event::Many => {
            owners.resume().await;
            world.webhooks.news.notify_one();
        }
    }
    Ok(())
}
