//! The fan-out: makes a delivery of each event in the outbox for each webhook that wants it, then
//! removes the event from the outbox. Both may happen twice: the id of a delivery follows from the
//! event and the webhook.

use crate::{
    kinds::{
        deliveries::{self, delivery_id},
        organizations::Organizations,
        webhooks::{
            Webhooks,
            outbox::{OutboxIndex, Outgoing},
        },
    },
    runtime::{
        entries::Under,
        guard::Guard,
        resource::{Input, Resource},
    },
    world::World,
};
use actix::prelude::*;
use contract::{Fault, MessageId};
use futures_util::{StreamExt, stream};
use std::{sync::Arc, time::Duration};
use store::{Change, Snapshot};

/// Events that are read at a time.
const BATCH: usize = 256;
/// Events whose deliveries are made at the same time.
const AT_A_TIME: usize = 64;
/// How long the outbox is left alone without news. A write whose outcome nobody knows brings none.
const LOOKS_EVERY: Duration = Duration::from_secs(30);
/// The pause before an event that could not be handed over is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub struct FanOut {
    world: Arc<World>,
}

impl FanOut {
    /// Starts on this thread's arbiter.
    pub fn start(world: Arc<World>) -> Addr<FanOut> {
        let clock = world.ports.clock.clone();
        let health = world.registry.add("fanOut", None, 1, clock.now());
        Guard::start(FanOut { world }, Default::default(), health, clock)
    }
}

impl Actor for FanOut {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        let world = self.world.clone();
        let rounds = async move {
            loop {
                let clock = &world.ports.clock;
                match empty(&world).await {
                    Ok(()) => {
                        clock.limit(LOOKS_EVERY, world.webhooks.news.notified()).await;
                    }
                    Err(fault) => {
                        tracing::warn!(error = %fault, "events wait in the outbox; trying again");
                        clock.sleep(AGAIN_AFTER).await;
                    }
                }
            }
        };
        ctx.spawn(rounds.into_actor(self));
    }
}

impl Supervised for FanOut {}

/// Hands over all events in the outbox.
async fn empty(world: &World) -> Result<(), Fault> {
    loop {
        let ids = world.store.oldest::<Outgoing>(&OutboxIndex::All, None, BATCH)?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut handed_over = stream::iter(ids)
            .map(|id| async move { hand_over(world, id).await })
            .buffer_unordered(AT_A_TIME);
        let (mut done, mut failed) = (Change::new(), None);
        while let Some(result) = handed_over.next().await {
            match result {
                Ok(Some((id, outgoing))) => done = done.remove::<Outgoing>(&id, &outgoing),
                Ok(None) => {}
                Err(fault) => failed = Some(fault),
            }
        }
        world.store.commit(done).await?;
        if let Some(fault) = failed {
            return Err(fault);
        }
    }
}

/// Makes the deliveries of one event. Returns the event, which is done then.
async fn hand_over(
    world: &World,
    id: MessageId,
) -> Result<Option<(MessageId, Snapshot<Outgoing>)>, Fault> {
    let Some(outgoing) = world.store.get::<Outgoing>(&id)? else { return Ok(None) };
    let of_organization = Under::<Organizations>(outgoing.organization_id);
    for webhook_id in world.store.all::<Webhooks>(&of_organization)? {
        let Some(webhook) = world.store.get::<Webhooks>(&webhook_id)? else { continue };
        if !webhook.wants(outgoing.event) {
            continue;
        }
        let new = deliveries::New {
            webhook_id,
            message_id: id,
            event: outgoing.event,
            payload: outgoing.payload.clone(),
            redelivery_of: None,
        };
        // No delivery is made for a webhook that is deleted at the same time.
        let held = Arc::new(move |_: &<deliveries::Deliveries as Resource>::State| {
            Ok(Change::new().require(&webhook_id, &webhook))
        });
        let owners = &world.owners()?.deliveries;
        let input = Input::Create(Box::new(new));
        owners.ask_with(delivery_id(id, webhook_id), input, held).await?;
    }
    Ok(Some((id, outgoing)))
}
