//! Much that waits delays nothing else: payloads, orders and limits of deliveries, and the sweeper.

use super::world::{Answer, Receiver, World, a_moment, app, clock, life, organization, until};
use actors::{
    background::sweeper::sweep,
    kinds::{
        delivery::artifacts::{Artifacts, StoredArtifact},
        events::{
            deliveries::{Deliveries, MOST_WAITING, State, delivery_id},
            webhooks::{
                self, Payload, Webhooks,
                outbox::{OutboxIndex, Outgoing},
            },
        },
        people::tenant::tenant_of,
    },
    runtime::{
        entries::Deadline,
        ref_count::{RefCount, RefCountDelta},
        resource::Kept,
    },
};
use contract::{
    ArtifactId, DeliveryId, Id, MessageId, OrganizationId, Timestamp, UserId, WebhookId,
    artifacts::ArtifactState,
    webhooks::{DeliveryState, EventType},
};
use serde_json::json;
use std::{fmt, marker::PhantomData, time::Duration};
use store::{Change, Entries, Entry, Record};
use ulid::Ulid;

const A: &str = "https://a.example.com/hooks";
const B: &str = "https://b.example.com/hooks";

/// A record of another kind that the program cannot read, with one index entry.
struct Unreadable<R>(PhantomData<R>);

impl<R: Record> Record for Unreadable<R> {
    const TREE: &'static str = R::TREE;
    const SCHEMA: u16 = R::SCHEMA;
    type Key = R::Key;
    type Content = String;

    fn index(entry: &String) -> Entries<Self> {
        Entries::default().and(At(entry.clone()))
    }
}

struct At(String);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<R: Record> Entry<Unreadable<R>> for At {}

async fn commit(world: &World, change: Change) {
    world.platform.world.store.commit(change).await.unwrap();
}

/// A delivery as its record says, in the form of the first version.
fn delivery(id: DeliveryId, webhook: WebhookId, due: Option<Timestamp>) -> Kept<Deliveries> {
    let state: State = serde_json::from_value(json!({
        "delivery": {
            "id": id, "webhookId": webhook, "messageId": MessageId::of(id.unique()),
            "event": "artifact.verified", "state": "pending", "attempts": [],
            "nextAttemptAt": due, "createdAt": Timestamp::from_millis(0),
        },
        "payload": "{\"type\":\"artifact.verified\"}",
        "due": due,
    }))
    .unwrap();
    Kept::at_rest(state)
}

#[test]
fn the_events_of_one_moment_come_in_their_order() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.webhook(A).await;
        world.webhook(B).await;
        for _ in 0..200 {
            world.artifact().await;
        }
        let store = &world.platform.world.store;
        let outbox = store.oldest::<Outgoing>(&OutboxIndex::All, None).keys();
        let events = outbox.collect::<Result<Vec<_>, _>>().unwrap();
        world.start_fan_out();
        for url in [A, B] {
            let got = receiver.wait_for(url, 200).await;
            let order: Vec<MessageId> = got.iter().map(|got| got.id().parse().unwrap()).collect();
            assert_eq!(order, events, "{url}");
        }
    });
}

#[test]
fn deliveries_share_the_payload_of_their_event_until_the_last_one_goes() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(B, Answer::Status(500));
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        let (a, b) = (world.webhook(A).await, world.webhook(B).await);
        world.artifact().await;
        let to_a = receiver.wait_for(A, 1).await.remove(0);
        let to_b = receiver.wait_for(B, 1).await.remove(0);
        assert_eq!(to_a.body, to_b.body);
        let store = &world.platform.world.store;
        let message: MessageId = to_a.id().parse().unwrap();
        let uses = || store.get::<Payload>(&message).unwrap().map(|payload| payload.uses());
        let waiting = || {
            let waiting = store.get::<RefCount>(&organization().to_string()).unwrap();
            waiting.map_or(0, |waiting| waiting.count)
        };
        until("one of two has ended", || waiting() == 1).await;
        assert_eq!(uses(), Some(2));
        let state = store.get::<Deliveries>(&delivery_id(message, a)).unwrap().unwrap();
        assert_eq!(state.payload(store).unwrap(), to_a.body);
        for (webhook, left) in [(b, Some(1)), (a, None)] {
            world
                .platform
                .world
                .to::<Webhooks>(webhook)
                .ask(webhooks::Command::Delete)
                .await
                .unwrap();
            let passing = async {
                while uses() != left {
                    world.pass(Duration::from_millis(100)).await;
                    a_moment().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), passing).await.unwrap();
            assert_eq!(waiting(), 0);
        }
    });
}

#[test]
fn a_delivery_of_the_first_version_keeps_its_own_payload() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    let receivers = (&clock, &receiver);
    let id = DeliveryId::of(Ulid(77));
    life(folder.path(), receivers, async |world| {
        let world = world.people().await;
        let webhook = world.webhook(A).await;
        let kept = Kept { awake: true, ..delivery(id, webhook, None) };
        commit(&world, Change::new().create::<Deliveries>(&id, kept)).await;
    });
    life(folder.path(), receivers, async |world| {
        let got = receiver.wait_for(A, 1).await.remove(0);
        assert_eq!(got.body, "{\"type\":\"artifact.verified\"}");
        let is_done = || world.delivery(id).is_some_and(|d| d.state == DeliveryState::Succeeded);
        until("the delivery succeeds", is_done).await;
        let store = &world.platform.world.store;
        assert!(store.get::<RefCount>(&organization().to_string()).unwrap().is_none());
    });
}

#[test]
fn an_organization_with_too_many_waiting_deliveries_loses_its_newest() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        world.start_fan_out();
        world.webhook(A).await;
        let (key, store) = (organization().to_string(), &world.platform.world.store);
        let waiting = |delta| Change::new().merge::<RefCount>(&key, delta);
        commit(&world, waiting(RefCountDelta::Add(MOST_WAITING - 1))).await;
        world.artifact().await;
        receiver.wait_for(A, 1).await;
        commit(&world, waiting(RefCountDelta::Add(1))).await;
        world.artifact().await;
        until("it is dropped", || world.platform.world.webhooks.dropped() == 1).await;
        let left = || store.count::<Outgoing>(&OutboxIndex::All).unwrap();
        until("the event is done", || left() == 0).await;
        commit(&world, waiting(RefCountDelta::Subtract(MOST_WAITING))).await;
        world.artifact().await;
        receiver.wait_for(A, 2).await;
        assert_eq!(store.whole::<Deliveries>(None).count(), 2);
    });
}

#[test]
fn events_that_cannot_be_handed_over_do_not_stop_the_others() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    let receivers = (&clock, &receiver);
    life(folder.path(), receivers, async |world| {
        let world = world.people().await;
        // Another organization has a webhook that cannot be read, and older events.
        let broken = OrganizationId::of(Ulid(900));
        let entry = format!("organization/{broken}");
        let unreadable = WebhookId::of(Ulid(901));
        commit(&world, Change::new().create::<Unreadable<Webhooks>>(&unreadable, entry)).await;
        let stuck = Outgoing {
            organization_id: broken,
            event: EventType::ArtifactVerified,
            payload: "{}".into(),
        };
        let mut change = Change::new();
        for n in 0..300 {
            change = change.append::<Outgoing>(&MessageId::of(Ulid(n)), &stuck);
        }
        commit(&world, change).await;
        world.webhook(A).await;
        world.artifact().await;
    });
    // The store remembers what it wrote, and reads it in another life.
    life(folder.path(), receivers, async |world| {
        world.start_fan_out();
        receiver.wait_for(A, 1).await;
        let store = &world.platform.world.store;
        let left = || store.count::<Outgoing>(&OutboxIndex::All).unwrap();
        until("only the others wait", || left() == 300).await;
    });
}

#[test]
fn an_organization_whose_receivers_never_answer_leaves_requests_to_others() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Never);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        for _ in 0..70 {
            world.webhook(A).await;
        }
        let other = OrganizationId::of(Ulid(900));
        world.organization(other, UserId::of(Ulid(901))).await;
        world.webhook_of(other, B).await;
        world.artifact().await;
        world.start_fan_out();
        receiver.wait_for(A, 64).await;
        let event = Outgoing {
            organization_id: other,
            event: EventType::ArtifactVerified,
            payload: "{}".into(),
        };
        let id = world.platform.world.ports.random.id(world.now());
        commit(&world, Change::new().append::<Outgoing>(&id, &event)).await;
        let passing = async {
            while receiver.got(B).is_empty() {
                world.pass(Duration::from_secs(1)).await;
                a_moment().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), passing).await.unwrap();
        assert_eq!(receiver.got(A).len(), 64, "requests of one organization that are under way");
    });
}

#[test]
fn the_organizations_of_one_account_are_one_tenant() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let (ada, bob) = (UserId::of(Ulid(901)), UserId::of(Ulid(902)));
        let tenant = async |id: u128, owner| {
            let id = OrganizationId::of(Ulid(id));
            world.organization(id, owner).await;
            tenant_of(&world.platform.world.store, id).unwrap()
        };
        assert_eq!(tenant(911, ada).await, tenant(912, ada).await);
        assert_ne!(tenant(913, ada).await, tenant(914, bob).await);
    });
}

#[test]
fn many_deliveries_that_are_due_delay_no_deadline_of_another_kind() {
    const DUE: u128 = 5_000;
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    receiver.answer(A, Answer::Never);
    life(folder.path(), (&clock, &receiver), async |world| {
        let world = world.people().await;
        let webhook = world.webhook(A).await;
        let mut change = Change::new();
        for n in 0..DUE {
            let id = DeliveryId::of(Ulid(1_000 + n));
            change = change.create::<Deliveries>(&id, delivery(id, webhook, Some(world.now())));
        }
        commit(&world, change).await;
        let artifact = expired_upload(&world).await;
        let store = &world.platform.world.store;
        let due = || store.before::<Deliveries>(&Deadline(world.now())).count();
        let state = || store.get::<Artifacts>(&artifact).unwrap().unwrap().artifact.state;
        world.clock.advance(Duration::from_secs(1));
        let told = async {
            until("the upload expires", || state() == ArtifactState::Expired).await;
            due()
        };
        let (left, ()) = futures_util::future::join(told, sweep(&world.platform)).await;
        assert!(left > 0, "all deliveries were told before it");
        assert_eq!(due(), 0, "all are told in the end");
    });
}

#[test]
fn the_sweeper_passes_what_stays_due() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    let receivers = (&clock, &receiver);
    life(folder.path(), receivers, async |world| {
        let world = world.people().await;
        let webhook = world.webhook(A).await;
        // More than a batch that nobody can tell, and one that is due after them.
        let mut change = Change::new();
        for n in 0..600 {
            let id = DeliveryId::of(Ulid(1_000 + n));
            let entry = Deadline(Timestamp::from_millis(1)).to_string();
            change = change.create::<Unreadable<Deliveries>>(&id, entry);
        }
        let id = DeliveryId::of(Ulid(1));
        change = change.create::<Deliveries>(&id, delivery(id, webhook, Some(world.now())));
        commit(&world, change).await;
    });
    life(folder.path(), receivers, async |world| {
        world.pass(Duration::from_secs(1)).await;
        receiver.wait_for(A, 1).await;
    });
}

/// An upload whose time is over.
async fn expired_upload(world: &World) -> ArtifactId {
    let id: ArtifactId = world.platform.world.ports.random.id(world.now());
    let upload: StoredArtifact = serde_json::from_value(json!({
        "artifact": {
            "id": id, "appId": app(), "platform": "android", "kind": "apk",
            "fileName": "app.apk", "version": "1.0.0", "trust": "token", "state": "pending",
            "provenance": {"path": "external-ci", "claimed": true}, "createdAt": world.now(),
        },
        "offset": 0, "length": 1, "declared": {}, "expires_at": world.now(),
    }))
    .unwrap();
    commit(world, Change::new().create::<Artifacts>(&id, Kept::at_rest(upload))).await;
    id
}
