//! The state machines of a webhook and of a delivery.

use actors::{
    kinds::events::{
        deliveries::{self, ATTEMPTS, Deliveries, Effect, Outcome, delivery_id},
        webhooks::{self, Webhook, Webhooks},
    },
    ports::{
        receivers::{Answered, Posted},
        sealed::Sealer,
    },
    runtime::{
        entries::due,
        resource::{Input, Kept, Moment, Resource, step},
    },
};
use contract::{
    DeliveryId, Id, MessageId, Timestamp, WebhookId,
    retention::Retention,
    webhooks::{DeliveryState, EventType},
};
use proptest::prelude::*;
use std::time::Duration;
use ulid::Ulid;

const HOUR: Duration = Duration::from_secs(3600);
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

fn take<R: Resource>(kept: Option<&Kept<R>>, now: Timestamp, input: Input<R>) -> Option<Kept<R>> {
    let at = Moment { id: R::Key::of(Ulid(7)), now };
    step(&at, kept, input).unwrap().apply(kept).unwrap()
}

fn posted(result: Result<u16, &str>) -> Posted {
    let answered = |status| Answered { status, retry_after: None, reply: String::new() };
    Posted { took: Duration::from_millis(3), result: result.map(answered).map_err(str::to_owned) }
}

fn attempted(at: Timestamp, result: Result<u16, &str>) -> Input<Deliveries> {
    Input::Outcome(Outcome::Attempted(at, posted(result)))
}

fn new_delivery(event: EventType) -> Kept<Deliveries> {
    let new = deliveries::New {
        organization_id: Id::of(Ulid(3)),
        webhook_id: WebhookId::of(Ulid(1)),
        message_id: MessageId::of(Ulid(2)),
        event,
        payload: "{}".into(),
        redelivery_of: None,
    };
    take(None, Timestamp::from_millis(0), Input::Create(Box::new(new))).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Passes(Duration),
    Answer(Result<u16, &'static str>),
    Abandoned,
    NoTurn,
    Due,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..200_u32).prop_map(|minutes| Event::Passes(Duration::from_secs(60) * minutes)),
        1 => (0..40_u32).prop_map(|days| Event::Passes(24 * HOUR * days)),
        6 => Just(Event::Answer(Ok(500))),
        2 => Just(Event::Answer(Err("no answer"))),
        1 => Just(Event::Answer(Ok(204))),
        1 => Just(Event::Answer(Ok(410))),
        1 => Just(Event::Abandoned),
        1 => Just(Event::NoTurn),
        6 => Just(Event::Due),
    ]
}

proptest! {
    /// Any events in any order.
    #[test]
    fn a_delivery_ends_once_and_never_hangs(events in proptest::collection::vec(event(), 1..80)) {
        let mut now = Timestamp::from_millis(0);
        let mut kept = new_delivery(EventType::BuildFailed);
        for event in events {
            // An outcome is possible only while its effect is pending.
            let input = match (event, kept.pending()) {
                (Event::Passes(time), _) => {
                    now = now + time;
                    continue;
                }
                (Event::Due, None) if due(&kept).is_some_and(|due| due <= now) => Input::Due,
                (Event::Due, None) => Input::RetentionOver(Retention::Deliveries, now - KEPT),
                (Event::Abandoned, Some(Effect::Attempt)) => {
                    Input::Outcome(Outcome::Abandoned("gone".into()))
                }
                (Event::NoTurn, Some(Effect::Attempt)) => Input::Outcome(Outcome::NoTurn),
                (Event::Answer(result), Some(Effect::Attempt)) => attempted(now, result),
                _ => continue,
            };
            let before = kept.state.delivery.clone();
            let ended = before.finished_at;
            let Some(next) = take(Some(&kept), now, input) else {
                let kept_for = ended.map(|ended| now.since(ended));
                prop_assert!(kept_for > Some(KEPT), "{event:?} removed {before:?}");
                break;
            };
            kept = next;
            let after = &kept.state.delivery;
            prop_assert!(ended.is_none() || before == *after, "the end is the end: {event:?}");
            prop_assert_eq!(after.state == DeliveryState::Pending, after.finished_at.is_none());
            prop_assert_eq!(after.state == DeliveryState::Failed, after.error.is_some());
            prop_assert!(after.attempts.len() <= ATTEMPTS);
            prop_assert!(
                kept.pending().is_some() || due(&kept).is_some() || !kept.retained().is_empty(),
                "nobody waits for ever: {event:?} {kept:?}"
            );
            prop_assert!(kept.pending().is_none() || after.finished_at.is_none());
        }
    }
}

#[test]
fn a_test_has_one_attempt() {
    let now = Timestamp::from_millis(0);
    for (answer, state) in [
        (Ok(200), DeliveryState::Succeeded),
        (Ok(302), DeliveryState::Failed),
        (Err("no"), DeliveryState::Failed),
    ] {
        let ended = take(Some(&new_delivery(EventType::WebhookTest)), now, attempted(now, answer));
        assert_eq!(ended.unwrap().state.delivery.state, state, "{answer:?}");
    }
}

#[test]
fn the_id_of_a_delivery_follows_from_event_and_webhook() {
    let (message, webhook) = (MessageId::of(Ulid::generate()), WebhookId::of(Ulid::generate()));
    let id = delivery_id(message, webhook);
    assert_eq!(id, delivery_id(message, webhook));
    assert_eq!(id.unique().timestamp_ms(), message.unique().timestamp_ms(), "it sorts by time");
    let other = DeliveryId::of(webhook.unique());
    assert!(id != delivery_id(message, WebhookId::of(message.unique())) && id != other);
}

fn webhook() -> Kept<Webhooks> {
    let secret = Sealer::new([7; 32]).seal("whk", "first").unwrap();
    let now = Timestamp::from_millis(0);
    Kept::at_rest(Webhook {
        organization_id: Id::of(Ulid(1)),
        url: "https://hooks.example.com".parse().unwrap(),
        description: None,
        events: Some(vec![EventType::BuildFailed]),
        enabled: true,
        disabled_reason: None,
        failing_since: None,
        secret,
        previous_secret: None,
        created_by: None,
        maker_epoch: 0,
        created_at: now,
        updated_at: now,
    })
}

#[test]
fn a_webhook_that_fails_for_five_days_is_disabled() {
    let mut kept = webhook();
    let mut tell = |hours: u32, command| {
        let now = Timestamp::from_millis(0) + HOUR * hours;
        kept = take(Some(&kept), now, Input::Command(command)).unwrap();
        kept.state.clone()
    };
    tell(1, webhooks::Command::Failing);
    tell(100, webhooks::Command::Failing);
    assert_eq!(tell(101, webhooks::Command::Working).failing_since, None);
    tell(102, webhooks::Command::Failing);
    assert!(tell(102 + 5 * 24 - 1, webhooks::Command::Failing).enabled);
    let disabled = tell(102 + 5 * 24, webhooks::Command::Failing);
    assert!(!disabled.enabled && disabled.disabled_reason.unwrap().contains("five days"));
    let enable = webhooks::Command::Update {
        url: None,
        events: contract::Patch::Keep,
        description: contract::Patch::Keep,
        enabled: Some(true),
    };
    let enabled = tell(300, enable);
    assert_eq!((enabled.disabled_reason, enabled.failing_since), (None, None));
    assert!(enabled.enabled);
}

#[test]
fn a_replaced_secret_signs_for_a_day() {
    let second = Sealer::new([7; 32]).seal("whk", "second").unwrap();
    let first = webhook();
    let rotate = Input::Command(webhooks::Command::Rotate(second.clone()));
    let rotated = take(Some(&first), Timestamp::from_millis(0), rotate).unwrap().state;
    let secrets = |hours: u32| {
        rotated.secrets(Timestamp::from_millis(0) + HOUR * hours).cloned().collect::<Vec<_>>()
    };
    assert_eq!(secrets(23), [second.clone(), first.state.secret]);
    assert_eq!(secrets(24), [second]);
}

#[test]
fn a_webhook_wants_its_events_while_it_is_enabled() {
    let webhook = webhook().state;
    assert!(webhook.wants(EventType::BuildFailed) && !webhook.wants(EventType::BuildStarted));
    let all = Webhook { events: None, ..webhook.clone() };
    assert!(EventType::ALL.iter().all(|event| all.wants(*event)));
    assert!(!Webhook { enabled: false, ..all }.wants(EventType::BuildFailed));
}
