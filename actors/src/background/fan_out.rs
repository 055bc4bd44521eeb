//! The fan-out: makes a delivery of each event in the outbox for each webhook that wants it, then
//! removes the event from the outbox. Both may happen twice: the id of a delivery follows from the
//! event and the webhook.

use crate::{
    kinds::{
        events::{
            deliveries::{self, Deliveries, delivery_id},
            webhooks::{
                Webhooks,
                outbox::{OutboxIndex, Outgoing},
            },
        },
        people::organizations::Organizations,
        world::World,
    },
    runtime::{
        entries::Under,
        guard::Guard,
        resource::{Input, Resource},
        turns::Waiting,
    },
};
use actix::prelude::*;
use contract::{Fault, MessageId, WebhookId};
use futures_util::{StreamExt, stream};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
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
                if !world.store.does("fan-out of events") {
                    clock.limit(LOOKS_EVERY, world.webhooks.news.notified()).await;
                    continue;
                }
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

/// Hands over all events in the outbox. One that cannot be handed over stays, and delays no other.
async fn empty(world: &World) -> Result<(), Fault> {
    let mut outbox = world.store.oldest::<Outgoing>(&OutboxIndex::All, None).keys();
    let mut failed = None;
    loop {
        let ids = outbox.by_ref().take(BATCH).collect::<Result<Vec<_>, _>>()?;
        if ids.is_empty() {
            return failed.map_or(Ok(()), Err);
        }
        let _held_back = hold_back(world, &ids);
        let mut handed_over = stream::iter(ids)
            .map(|id| async move { hand_over(world, id).await })
            .buffer_unordered(AT_A_TIME);
        let mut done = Change::new();
        while let Some(result) = handed_over.next().await {
            match result {
                Ok(Some((id, outgoing))) => done = done.remove::<Outgoing>(&id, &outgoing),
                Ok(None) => {}
                Err(fault) => failed = Some(fault),
            }
        }
        world.store.commit(done).await?;
    }
}

/// Lets no first attempt of these events begin until all of their deliveries are there, so that they
/// can begin in the order of the events. Where that fails, they may begin in another order.
fn hold_back(world: &World, ids: &[MessageId]) -> Vec<Waiting<WebhookId>> {
    let events = ids.iter().filter_map(|id| world.store.get::<Outgoing>(id).ok().flatten());
    let organizations: BTreeSet<_> = events.map(|event| event.organization_id).collect();
    let webhooks = |id| world.store.newest::<Webhooks>(&Under::<Organizations>(id), None).keys();
    let webhooks = organizations.into_iter().flat_map(webhooks).flatten();
    webhooks.filter_map(|id| world.webhooks.turns.hold_back(id).ok()).collect()
}

/// Makes the deliveries of one event. Returns the event, which is done then.
async fn hand_over(
    world: &World,
    id: MessageId,
) -> Result<Option<(MessageId, Snapshot<Outgoing>)>, Fault> {
    let Some(outgoing) = world.store.get::<Outgoing>(&id)? else { return Ok(None) };
    let of_organization = Under::<Organizations>(outgoing.organization_id);
    for found in world.store.newest::<Webhooks>(&of_organization, None) {
        let (webhook_id, webhook) = found?;
        if !webhook.wants(outgoing.event) {
            continue;
        }
        if !deliveries::is_room(&world.store, outgoing.organization_id)? {
            world.webhooks.drop_delivery(outgoing.organization_id);
            continue;
        }
        let new = deliveries::New {
            organization_id: outgoing.organization_id,
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
        let input = Input::Create(Box::new(new));
        world.to::<Deliveries>(delivery_id(id, webhook_id)).ask_with(input, held).await?;
    }
    Ok(Some((id, outgoing)))
}
