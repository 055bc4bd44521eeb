//! Hears what other processes did that share the store, and tells those whom it concerns: owners whose records
//! they wrote, and all owners when this process got leases or lost some.

use crate::{
    kinds::{events::webhooks::outbox::Outgoing, world::World},
    runtime::guard::Guard,
};
use actix::prelude::*;
use contract::Fault;
use std::{sync::Arc, time::Duration};
use store::{Event, Record};

/// The pause before the owners are looked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub struct OtherNodes {
    world: Arc<World>,
}

impl OtherNodes {
    /// Starts on this thread's arbiter.
    pub fn start(world: Arc<World>) -> Addr<OtherNodes> {
        let clock = world.ports.clock.clone();
        let health = world.registry.add("otherNodes", None, 1, clock.now());
        Guard::start(OtherNodes { world }, Default::default(), health, clock)
    }
}

impl Actor for OtherNodes {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        let world = self.world.clone();
        let hear = async move {
            let mut others = world.store.others();
            // What was told before is not told again.
            let mut event = Event::Leases;
            loop {
                while tell(&world, &event).await.is_err() {
                    world.ports.clock.sleep(AGAIN_AFTER).await;
                }
                event = others.next().await;
            }
        };
        ctx.spawn(hear.into_actor(self));
    }
}

impl Supervised for OtherNodes {}

/// Refused while the owners are being started.
async fn tell(world: &World, event: &Event) -> Result<(), Fault> {
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
