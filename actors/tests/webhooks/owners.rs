//! Events from the change to the receiver, with failures and ends of the process in between.

use super::world::{
    Answer, Receiver, Request, a_moment, app, clock, life, organization, project, until,
};
use actors::kinds::{
    delivery::artifacts::Artifacts,
    events::{
        deliveries::{ATTEMPTS, Deliveries, New, delivery_id},
        webhooks::{
            Webhooks,
            outbox::{OutboxIndex, Outgoing},
        },
    },
    people::{
        organizations::{self, Organizations},
        projects,
    },
};
use contract::{MessageId, webhooks::DeliveryState};
use std::{collections::HashSet, time::Duration};

const A: &str = "https://a.example.com/hooks";
const B: &str = "https://b.example.com/hooks";
const HOUR: Duration = Duration::from_secs(3600);

fn message(request: &Request) -> MessageId {
    request.id().parse().unwrap()
}

#[test]
fn without_a_webhook_nothing_is_written() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.artifact().await;
        let store = &world.platform.world.store;
        assert_eq!(store.count::<Outgoing>(&OutboxIndex::All).unwrap(), 0);
        let webhook = world.webhook(A).await;
        world.artifact().await;
        assert_eq!(store.count::<Outgoing>(&OutboxIndex::All).unwrap(), 1);

        // After the last webhook too. Its owner tells the memory after the write, which readers see before.
        let owner = || world.platform.world.to::<Webhooks>(webhook);
        owner().ask(actors::kinds::events::webhooks::Command::Delete).await.unwrap();
        assert!(owner().wait_idle(HOUR).await.unwrap().is_none());
        world.artifact().await;
        assert_eq!(store.count::<Outgoing>(&OutboxIndex::All).unwrap(), 1);
        world.start_fan_out();
        let left = || store.count::<Outgoing>(&OutboxIndex::All).unwrap();
        until("what nobody wants goes", || left() == 0).await;
        assert!(receiver.got(A).is_empty());
    });
}

#[test]
fn a_receiver_that_fails_is_asked_by_the_schedule_and_then_no_more() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Status(500));
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        let webhook = world.webhook(A).await;
        world.artifact().await;
        let first = receiver.wait_for(A, 1).await.remove(0);
        let id = delivery_id(message(&first), webhook);
        for failed in 1..ATTEMPTS {
            let waits = || world.delivery(id).is_some_and(|d| d.attempts.len() == failed);
            until("the attempt is written", waits).await;
            let next = world.delivery(id).unwrap().next_attempt_at.unwrap();
            let pause = next.since(world.now());
            world.pass(pause - Duration::from_millis(1)).await;
            a_moment().await;
            assert_eq!(receiver.got(A).len(), failed, "not before its time");
            // The owner may have begun its pause a moment after it wrote the time of the attempt.
            while receiver.got(A).len() == failed {
                world.pass(Duration::from_secs(1)).await;
                a_moment().await;
            }
        }
        let is_failed = || world.delivery(id).is_some_and(|d| d.state == DeliveryState::Failed);
        until("the delivery fails", is_failed).await;
        world.pass(48 * HOUR).await;
        let got = receiver.got(A);
        assert_eq!(got.len(), ATTEMPTS);
        let same = |request: &Request| (request.id(), &request.body) == (first.id(), &first.body);
        assert!(got.iter().all(same), "the same message each time");
        let total = got[ATTEMPTS - 1].at.since(got[0].at);
        let usual = Duration::from_secs(75 * 3600 + 35 * 60 + 5);
        assert!(total > usual.mul_f64(0.9) && total < usual.mul_f64(1.1), "{total:?}");
        let signatures: HashSet<_> =
            got.iter().map(|request| request.headers["webhook-signature"].clone()).collect();
        assert_eq!(signatures.len(), ATTEMPTS, "signed anew each time");

        // The next failure comes after five days without success.
        let store = &world.platform.world.store;
        let enabled = || store.get::<Webhooks>(&webhook).unwrap().unwrap().enabled;
        assert!(enabled());
        world.pass(24 * HOUR).await;
        world.artifact().await;
        until("the webhook is disabled", || !enabled()).await;

        // A delivery is kept for thirty days.
        let ended = world.delivery(id).unwrap().finished_at.unwrap();
        world.pass((ended + 30 * 24 * HOUR).since(world.now()) - HOUR).await;
        assert!(world.delivery(id).is_some());
        world.pass(2 * HOUR).await;
        until("the delivery goes", || world.delivery(id).is_none()).await;
    });
}

#[test]
fn a_receiver_can_ask_for_time_and_can_end_it() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Later(429, 3 * HOUR));
    receiver.answer(B, Answer::Status(410));
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        let (a, b) = (world.webhook(A).await, world.webhook(B).await);
        world.artifact().await;
        let first = receiver.wait_for(A, 1).await.remove(0);
        let (to_a, to_b) = (delivery_id(message(&first), a), delivery_id(message(&first), b));
        let pause = || world.delivery(to_a)?.next_attempt_at.map(|next| next.since(world.now()));
        until("the attempt is written", || pause().is_some()).await;
        assert_eq!(pause(), Some(3 * HOUR));
        let is_failed = || world.delivery(to_b).is_some_and(|d| d.state == DeliveryState::Failed);
        until("the other delivery fails", is_failed).await;
        let found = world.platform.world.store.get::<Webhooks>(&b).unwrap().unwrap();
        assert!(!found.enabled && found.disabled_reason.as_ref().unwrap().contains("410"));
        world.artifact().await;
        receiver.wait_for(A, 2).await;
        assert_eq!(receiver.got(B).len(), 1, "nothing more");
    });
}

#[test]
fn a_receiver_can_ask_to_be_asked_again_soon() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Later(503, Duration::from_secs(2)));
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        let webhook = world.webhook(A).await;
        world.artifact().await;
        let first = receiver.wait_for(A, 1).await.remove(0);
        let id = delivery_id(message(&first), webhook);
        let pause = || {
            let delivery = world.delivery(id)?;
            delivery.next_attempt_at.map(|next| next.since(delivery.attempts[0].at))
        };
        until("the attempt is written", || pause().is_some()).await;
        assert_eq!(pause(), Some(Duration::from_secs(2)));
        let passing = async {
            while receiver.got(A).len() < 2 {
                world.pass(Duration::from_secs(1)).await;
                a_moment().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), passing).await.unwrap();
    });
}

#[test]
fn a_receiver_that_never_answers_delays_nobody_else() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Never);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        world.webhook(A).await;
        world.webhook(B).await;
        for _ in 0..30 {
            world.artifact().await;
        }
        let got = receiver.wait_for(B, 30).await;
        assert_eq!(got.iter().map(Request::id).collect::<HashSet<_>>().len(), 30);
        let passing = async {
            while receiver.got(A).len() < 8 {
                world.pass(Duration::from_secs(1)).await;
                a_moment().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), passing).await.unwrap();
        world.pass(Duration::from_secs(5)).await;
        a_moment().await;
        assert_eq!(receiver.got(A).len(), 8, "requests that are under way to one receiver");
    });
}

#[test]
fn no_end_of_the_process_loses_an_event_or_makes_two_of_it() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    let receivers = (&clock, &receiver);
    // The end comes before the fan-out.
    let webhook = life(folder.path(), receivers, async |world| {
        let world = world.people().await;
        let webhook = world.webhook(A).await;
        world.artifact().await;
        assert_eq!(receiver.got(A), []);
        webhook
    });
    // The end comes during the attempt.
    receiver.answer(A, Answer::Never);
    let first = life(folder.path(), receivers, async |world| {
        world.start_fan_out();
        receiver.wait_for(A, 1).await.remove(0)
    });
    let id = delivery_id(message(&first), webhook);
    receiver.answer(A, Answer::Status(204));
    life(folder.path(), receivers, async |world| {
        world.start_fan_out();
        let again = receiver.wait_for(A, 2).await.remove(1);
        assert_eq!((again.id(), &again.body), (first.id(), &first.body));
        let is_done = || world.delivery(id).is_some_and(|d| d.state == DeliveryState::Succeeded);
        until("the delivery succeeds", is_done).await;
        let store = &world.platform.world.store;
        let left = || store.count::<Outgoing>(&OutboxIndex::All).unwrap();
        until("the outbox is empty", || left() == 0).await;
    });
    // The end comes between the delivery and the removal from the outbox.
    let second = life(folder.path(), receivers, async |world| {
        world.artifact().await;
        let world = &world.platform.world;
        let mut outbox = world.store.oldest::<Outgoing>(&OutboxIndex::All, None);
        let (id, outgoing) = outbox.next().unwrap().unwrap();
        let new = New {
            organization_id: organization(),
            webhook_id: webhook,
            message_id: id,
            event: outgoing.event,
            payload: outgoing.payload.clone(),
            redelivery_of: None,
        };
        world.to::<Deliveries>(delivery_id(id, webhook)).create(new).await.unwrap();
        receiver.wait_for(A, 3).await.remove(2)
    });
    life(folder.path(), receivers, async |world| {
        let store = &world.platform.world.store;
        assert_eq!(store.count::<Outgoing>(&OutboxIndex::All).unwrap(), 1);
        world.start_fan_out();
        let left = || store.count::<Outgoing>(&OutboxIndex::All).unwrap();
        until("the outbox is empty", || left() == 0).await;
        let id = delivery_id(message(&second), webhook);
        let is_done = || world.delivery(id).is_some_and(|d| d.state == DeliveryState::Succeeded);
        until("the delivery succeeds", is_done).await;
        assert_eq!(store.whole::<Deliveries>(None).count(), 2, "one for each event");
        assert_eq!(receiver.got(A).len(), 3);
    });
}

#[test]
fn an_organization_goes_with_its_webhooks_deliveries_and_events() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Status(503));
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        world.webhook(A).await;
        let artifact = world.artifact().await;
        receiver.wait_for(A, 1).await;
        let store = &world.platform.world.store;
        // Deleted artifacts delete their bytes, which this world cannot.
        store
            .commit(store::Change::new().remove::<Artifacts>(
                &artifact,
                &store.get::<Artifacts>(&artifact).unwrap().unwrap(),
            ))
            .await
            .unwrap();
        let delete = organizations::Command::Delete { cascade: true };
        world.platform.world.to::<Organizations>(organization()).ask(delete).await.unwrap();
        let gone = || {
            let gone = store.get::<organizations::Organizations>(&organization()).unwrap();
            gone.is_none()
        };
        let passing = async {
            while !gone() {
                world.pass(Duration::from_millis(100)).await;
                a_moment().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), passing).await.unwrap();
        assert!(store.get::<projects::Projects>(&project()).unwrap().is_none(), "{}", app());
        assert!(store.whole::<Webhooks>(None).next().is_none());
        assert!(store.whole::<Deliveries>(None).next().is_none());
        until("no event waits", || store.count::<Outgoing>(&OutboxIndex::All).unwrap() == 0).await;
        assert!(world.platform.world.webhooks.is_empty());
    });
}

#[test]
fn a_delivery_that_waits_or_has_ended_stays_so_after_an_end_of_the_process() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    let receivers = (&clock, &receiver);
    receiver.answer(A, Answer::Status(500));
    let id = life(folder.path(), receivers, async |world| {
        let world = world.people().await;
        world.start_fan_out();
        let webhook = world.webhook(A).await;
        world.artifact().await;
        let first = receiver.wait_for(A, 1).await.remove(0);
        let id = delivery_id(message(&first), webhook);
        until("it waits", || world.delivery(id).is_some_and(|d| d.attempts.len() == 1)).await;
        id
    });
    // It waits for seconds: the owner waits for them in the next life too.
    life(folder.path(), receivers, async |world| {
        let next = world.delivery(id).unwrap().next_attempt_at.unwrap();
        assert!(next > world.now());
        a_moment().await;
        assert_eq!(receiver.got(A).len(), 1);
        world.pass(next.since(world.now())).await;
        receiver.wait_for(A, 2).await;
        until("it waits", || world.delivery(id).unwrap().attempts.len() == 2).await;
    });
    // It waits for minutes: the sweeper wakes its owner.
    receiver.answer(A, Answer::Status(204));
    life(folder.path(), receivers, async |world| {
        let next = world.delivery(id).unwrap().next_attempt_at.unwrap();
        world.pass(next.since(world.now()) - Duration::from_millis(1)).await;
        a_moment().await;
        assert_eq!(receiver.got(A).len(), 2);
        world.pass(Duration::from_millis(2)).await;
        receiver.wait_for(A, 3).await;
        let is_done = || world.delivery(id).unwrap().state == DeliveryState::Succeeded;
        until("the delivery succeeds", is_done).await;
    });
    life(folder.path(), receivers, async |world| {
        world.start_fan_out();
        world.pass(24 * HOUR).await;
        for _ in 0..20 {
            a_moment().await;
        }
        let got = receiver.got(A);
        assert_eq!(got.len(), 3, "nothing more");
        assert!(got.iter().all(|request| request.id() == got[0].id()));
        assert_eq!(world.delivery(id).unwrap().attempts.len(), 3);
    });
}
