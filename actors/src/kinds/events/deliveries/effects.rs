//! The effect of a delivery: one attempt.

use super::rules::{Deliveries, GONE, Outcome, refusal};
use crate::{
    kinds::{
        events::webhooks::{self, Webhook, Webhooks, signature},
        people::tenant::tenant_of,
        world::World,
    },
    ports::{receivers::Posted, sealed::SealError},
    runtime::resource::Retry,
};
use contract::{Timestamp, WebhookId, webhooks::EventType};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// How long a delivery waits in memory for its turn.
const AWAITS_TURN: Duration = Duration::from_secs(300);
/// How long the first attempts of later events to a webhook wait for the answer to this one, so that
/// they arrive in their order. More would make a burst slow at a receiver that is far away.
const HEAD_START: Duration = Duration::from_millis(50);

pub(super) async fn attempt(
    kept: Snapshot<Deliveries>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let delivery = &kept.delivery;
    let (id, is_test) = (delivery.webhook_id, delivery.event == EventType::WebhookTest);
    let clock = &world.ports.clock;
    let Some(webhook) = world.store.get::<Webhooks>(&id)? else { return Ok(deleted()) };
    let first = delivery.attempts.is_empty().then_some(delivery.message_id);
    let tenant = tenant_of(&world.store, webhook.organization_id)?;
    let turn = world.webhooks.turns.take(tenant, id, first);
    let Some(Ok(mut turn)) = clock.limit(AWAITS_TURN, turn).await else {
        return Ok(Outcome::NoTurn);
    };
    // Read again: it may have changed while the delivery waited.
    let Some(webhook) = world.store.get::<Webhooks>(&id)?.filter(|w| !w.is_deleted()) else {
        return Ok(deleted());
    };
    if !webhook.enabled && !is_test {
        return Ok(Outcome::Abandoned("the webhook is disabled".into()));
    }
    // After the wait for the turn: receivers refuse an old time.
    let begun = clock.now();
    let Ok(secrets) = open(&world, id, &webhook, begun) else {
        return Ok(Outcome::Abandoned(
            "the secret of the webhook cannot be read; rotate it".into(),
        ));
    };
    let payload = kept.payload(&world.store)?;
    let headers = signature::headers(delivery.message_id, begun, &payload, &secrets);
    let mut posting = world.ports.receivers.post(&webhook.url, headers, payload);
    let posted = match clock.limit(HEAD_START, &mut posting).await {
        Some(posted) => posted,
        None => {
            turn.beginning = None;
            posting.await
        }
    };
    drop(turn);
    if !is_test {
        report(&world, id, begun, &posted).await;
    }
    Ok(Outcome::Attempted(begun, posted))
}

fn deleted() -> Outcome {
    Outcome::Abandoned("the webhook was deleted".into())
}

fn open(
    world: &World,
    id: WebhookId,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<Vec<signature::Secret>, SealError> {
    let owner = id.to_string();
    let secrets = webhook.secrets(now).map(|sealed| world.ports.sealer.open(&owner, sealed));
    secrets.map(|secret| secret.map(signature::Secret::of)).collect()
}

/// Tells the webhook how its receiver does, if that is news. A report that fails is not repeated: the
/// attempt would be, and the next one tells the same.
async fn report(world: &World, id: WebhookId, begun: Timestamp, posted: &Posted) {
    // Read again: other attempts may have told it something meanwhile.
    let Ok(Some(webhook)) = world.store.get::<Webhooks>(&id) else { return };
    let failing_since = webhook.failing_since;
    let is_known = failing_since.is_some_and(|since| begun.since(since) < webhooks::FAILS_AT_MOST);
    let command = match (refusal(posted), &posted.result) {
        (None, _) if failing_since.is_none() => return,
        (None, _) => webhooks::Command::Working,
        (Some(_), Ok(answer)) if answer.status == GONE => {
            webhooks::Command::Disable("the receiver answered with the status 410 (gone)".into())
        }
        (Some(_), _) if is_known => return,
        (Some(_), _) => webhooks::Command::Failing,
    };
    if let Err(fault) = world.to::<Webhooks>(id).ask_if_there(command).await {
        tracing::warn!(%id, error = %fault, "a webhook was not told how its receiver does");
    }
}
