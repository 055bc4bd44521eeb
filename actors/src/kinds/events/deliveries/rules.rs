//! The rules of a delivery: `pending → succeeded | failed`. After a failed attempt, the next one
//! follows the schedule. A delivery that has ended is kept for its retention.

use super::schedule::{Pause, pause};
use crate::{
    kinds::{
        events::webhooks::{Payload, PayloadDelta, Webhooks},
        world::World,
    },
    ports::receivers::Posted,
    runtime::{
        entries::InState,
        ref_count::{RefCount, RefCountDelta},
        resource::{Child, Moment, Resource, Retry, Step, Work},
        store::Store,
    },
};
use contract::{
    DeliveryId, Fault, Id, MessageId, OrganizationId, Timestamp, WebhookId,
    retention::Retention,
    webhooks::{DeliveryAttempt, DeliveryState, EventType, WebhookDelivery},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};
use store::{Change, Entries, Snapshot};
use ulid::Ulid;

#[derive(Debug, Clone, Copy)]
pub struct Deliveries;

/// The pause after which a delivery that got no turn asks for one again.
const WITHOUT_TURN: Duration = Duration::from_secs(300);
/// How many deliveries of one organization may wait. Events beyond it are dropped.
pub const MOST_WAITING: u64 = 10_000;
/// The receiver wants nothing more (RFC 9110).
pub(super) const GONE: u16 = 410;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The part that callers see, without the payload.
    pub delivery: WebhookDelivery,
    /// The organization whose waiting deliveries count this one. `None` in deliveries of earlier
    /// versions, which nothing counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<OrganizationId>,
    /// The body of the requests in deliveries of earlier versions. The others share the
    /// [`Payload`] of their event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// How many attempts came sooner than the schedule says, because the receiver asked for that.
    #[serde(default)]
    pub early: usize,
}

/// A delivery to make.
#[derive(Debug, Clone)]
pub struct New {
    pub organization_id: OrganizationId,
    pub webhook_id: WebhookId,
    pub message_id: MessageId,
    pub event: EventType,
    pub payload: String,
    pub redelivery_of: Option<DeliveryId>,
}

#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// Delete the delivery together with its webhook.
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Send the event. After a crash, the receiver may get it again, with the same `webhook-id`.
    Attempt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The attempt that began at this time.
    Attempted(Timestamp, Posted),
    /// The receiver is busy with deliveries that came before.
    NoTurn,
    /// There is nobody to send it to, for this reason.
    Abandoned(String),
}

/// Whether another delivery of the organization may wait.
pub fn is_room(store: &Store, organization: OrganizationId) -> Result<bool, Fault> {
    let waiting = store.get::<RefCount>(&organization.to_string())?;
    Ok(waiting.is_none_or(|waiting| waiting.count < MOST_WAITING))
}

/// The id of the delivery of an event to a webhook. It is always the same, so that the delivery is
/// made once.
pub fn delivery_id(message: MessageId, webhook: WebhookId) -> DeliveryId {
    let digest: [u8; 32] = Sha256::digest(format!("{message} {webhook}")).into();
    let random = digest.iter().take(10).fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    DeliveryId::of(Ulid::from_parts(message.unique().timestamp_ms(), random))
}

/// The count of the deliveries of an organization that have not ended.
fn waiting(organization: OrganizationId, delta: RefCountDelta) -> Change {
    Change::new().merge::<RefCount>(&organization.to_string(), delta)
}

impl State {
    /// The body of the requests.
    pub fn payload(&self, store: &Store) -> Result<String, Fault> {
        if let Some(payload) = &self.payload {
            return Ok(payload.clone());
        }
        let payload = store.get::<Payload>(&self.delivery.message_id)?;
        payload.map(|payload| payload.text.clone()).ok_or(Fault::Internal)
    }

    /// What an end of the delivery changes beside it.
    fn no_longer_waits(&self) -> Change {
        let is_over = self.delivery.finished_at.is_some();
        let counted_by = self.organization_id.filter(|_| !is_over);
        counted_by.map_or_else(Change::new, |id| waiting(id, RefCountDelta::Subtract(1)))
    }

    fn remove(&self) -> Step<Deliveries> {
        let mut also = self.no_longer_waits();
        if self.payload.is_none() {
            also = also.merge::<Payload>(&self.delivery.message_id, PayloadDelta::Leave);
        }
        Step::remove().also(also)
    }

    fn end(
        mut self,
        state: DeliveryState,
        error: Option<String>,
        now: Timestamp,
    ) -> Step<Deliveries> {
        let also = self.no_longer_waits();
        let delivery = &mut self.delivery;
        (delivery.state, delivery.error) = (state, error);
        (delivery.next_attempt_at, delivery.finished_at) = (None, Some(now));
        Step::put(self).also(also)
    }

    fn attempted(
        mut self,
        at: &Moment<Deliveries>,
        begun: Timestamp,
        posted: Posted,
    ) -> Step<Deliveries> {
        let answer = posted.result.as_ref().ok();
        let (status, asked) =
            (answer.map(|answer| answer.status), answer.and_then(|answer| answer.retry_after));
        let error = refusal(&posted);
        let is_accepted = error.is_none();
        self.delivery.attempts.push(DeliveryAttempt {
            at: begun,
            duration_ms: u64::try_from(posted.took.as_millis()).unwrap_or(u64::MAX),
            status,
            error,
            reply: posted.result.ok().map(|answer| answer.reply).filter(|reply| !reply.is_empty()),
        });
        if is_accepted {
            return self.end(DeliveryState::Succeeded, None, at.now);
        }
        if status == Some(GONE) {
            let why = "the receiver is gone, so the webhook was disabled".to_owned();
            return self.end(DeliveryState::Failed, Some(why), at.now);
        }
        if self.delivery.event == EventType::WebhookTest {
            let why = "a test has one attempt, and it failed".to_owned();
            return self.end(DeliveryState::Failed, Some(why), at.now);
        }
        let attempts = self.delivery.attempts.len();
        match pause(at.id, attempts, self.early, asked) {
            Some(Pause::Usual(pause)) => self.wait(at, pause),
            Some(Pause::Early(pause)) => {
                self.early += 1;
                self.wait(at, pause)
            }
            None => {
                let why = format!("none of {attempts} attempts succeeded");
                self.end(DeliveryState::Failed, Some(why), at.now)
            }
        }
    }

    /// Makes the next attempt after a pause.
    fn wait(mut self, at: &Moment<Deliveries>, pause: Duration) -> Step<Deliveries> {
        self.delivery.next_attempt_at = Some(at.now + pause);
        Step::put(self)
    }
}

/// Why an attempt failed; `None` if it succeeded.
pub(super) fn refusal(posted: &Posted) -> Option<String> {
    match &posted.result {
        Err(why) => Some(why.clone()),
        Ok(answer) if (200..300).contains(&answer.status) => None,
        Ok(answer) if (300..400).contains(&answer.status) => Some(format!(
            "the receiver redirects (status {}), which is not followed",
            answer.status
        )),
        Ok(answer) => Some(format!("the receiver answered with the status {}", answer.status)),
    }
}

impl Resource for Deliveries {
    const INDEX: u16 = 3;
    /// An attempt may wait for its turn.
    const TIME_LIMIT: Duration = Duration::from_secs(600);
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        let delivery = WebhookDelivery {
            id: at.id,
            webhook_id: new.webhook_id,
            message_id: new.message_id,
            event: new.event,
            state: DeliveryState::Pending,
            attempts: Vec::new(),
            next_attempt_at: None,
            error: None,
            redelivery_of: new.redelivery_of,
            payload: None,
            created_at: at.now,
            finished_at: None,
        };
        let also = waiting(new.organization_id, RefCountDelta::Add(1))
            .merge::<Payload>(&new.message_id, PayloadDelta::Use(new.payload));
        let organization_id = Some(new.organization_id);
        let state = State { delivery, organization_id, payload: None, early: 0 };
        Ok(Step::put(state).also(also))
    }

    fn on_command(
        state: State,
        _: &Moment<Self>,
        Command::Remove: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(state.remove())
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            // The outcome of an overtaken effect.
            _ if state.delivery.finished_at.is_some() => Step::keep(),
            Outcome::Attempted(begun, posted) => state.attempted(at, begun, posted),
            Outcome::NoTurn => state.wait(at, WITHOUT_TURN),
            Outcome::Abandoned(why) => state.end(DeliveryState::Failed, Some(why), at.now),
        }
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        let WebhookDelivery { finished_at, next_attempt_at, .. } = state.delivery;
        finished_at.is_none().then_some(Work { at: next_attempt_at, ..Work::now(Effect::Attempt) })
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let ended = state.delivery.finished_at;
        ended.map(|ended| (Retention::Deliveries, ended)).into_iter().collect()
    }

    fn on_retention_over(
        state: State,
        _: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        Ok(state.remove())
    }

    fn index(state: &State) -> Entries<Self> {
        let delivery = &state.delivery;
        Entries::default().and(InState::<Webhooks>::new(delivery.webhook_id, delivery.state))
    }

    fn perform(
        Effect::Attempt: Effect,
        _: DeliveryId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::attempt(kept, world))
    }
}

impl Child for Deliveries {
    fn parent(state: &State) -> Option<WebhookId> {
        Some(state.delivery.webhook_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}
