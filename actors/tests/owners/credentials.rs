//! The owners of credentials, and a mail server that fails on demand.

use super::{harness::comes_to, world};
use actix_rt::{Arbiter, System};
use actors::{
    kinds::{
        delivery::credentials::{Command, Credentials, New, State},
        people::{
            accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects,
        },
        world::World,
    },
    ports::{PortError, Ports, mail::Mail},
    runtime::{
        manual_clock::ManualClock,
        resource::{Input, Kept, Moment, Resource, step},
    },
};
use async_trait::async_trait;
use contract::{
    AppId, CredentialId, Email, Fault, Id, OrganizationId, ProjectId, Timestamp, UserId,
    credentials::{AccessCheck, Credential},
};
use serde_json::json;
use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use store::Change;
use ulid::Ulid;

const DAY: Duration = Duration::from_secs(24 * 3600);
const OWNER: &str = "ada@example.com";
const ADMIN: &str = "bob@example.com";

/// What the server does with a mail.
#[derive(Debug, Clone, PartialEq)]
enum Does {
    Deliver,
    Refuse,
    /// Delivers the mail and never answers.
    Hang,
}

/// A mail server: what it delivered, and what it does next to a mail for this address.
#[derive(Default)]
struct Server {
    delivered: Mutex<Vec<(String, String)>>,
    next: Mutex<Vec<(&'static str, Does)>>,
}

#[async_trait]
impl Mail for Server {
    async fn send(&self, to: &Email, subject: &str, _: &str) -> Result<(), PortError> {
        let does = {
            let mut next = self.next.lock().unwrap();
            let meant = next.iter().position(|(address, _)| *address == to.as_str());
            meant.map_or(Does::Deliver, |at| next.remove(at).1)
        };
        if does == Does::Refuse {
            return Err(PortError("no such mailbox".into()));
        }
        self.delivered.lock().unwrap().push((to.to_string(), subject.to_owned()));
        if does == Does::Hang {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

impl Server {
    /// The subjects of the mails to this address.
    fn inbox(&self, address: &str) -> Vec<String> {
        let delivered = self.delivered.lock().unwrap();
        let to = delivered.iter().filter(|(to, _)| to == address);
        to.map(|(_, subject)| subject.clone()).collect()
    }
}

async fn start(folder: &Path, clock: &ManualClock, mail: &Arc<Server>) -> Arc<World> {
    let engine = world::engine(clock);
    let arbiters = [Arbiter::new(), Arbiter::new()];
    let mail = mail.clone();
    world::start_with(folder, (clock, &engine), &arbiters, |ports| Ports { mail, ..ports }).await
}

/// An organization with an owner, an admin and a supervisor, and an app of it.
async fn people(world: &World) {
    let now = world.ports.clock.now();
    let organization = OrganizationId::of(Ulid(2));
    let users: Vec<UserId> = (11..14).map(|n| UserId::of(Ulid(n))).collect();
    let mut change = Change::new();
    for (user, email) in users.iter().zip([OWNER, ADMIN, "sue@example.com"]) {
        let account = json!({
            "email": email, "name": "Somebody", "avatar_url": null, "company": null,
            "password_hash": "", "tier": "free", "superadmin": false, "epoch": 0,
            "personal": organization, "created_at": now, "updated_at": now,
        });
        change = change.create::<Accounts>(user, kept(account));
    }
    let roles = ["admin", "admin", "supervisor"];
    let members = users
        .iter()
        .zip(roles)
        .map(|(user, role)| json!({"user": user, "role": role, "joined_at": now}));
    let record = json!({
        "name": "Acme", "owner": users[0], "personal": false, "deleting": false, "leaving": [],
        "invitations": [], "members": members.collect::<Vec<_>>(), "created_at": now,
        "updated_at": now,
    });
    change = change.create::<Organizations>(&organization, kept(record));
    let record = json!({
        "id": ProjectId::of(Ulid(1)), "organizationId": organization, "ownerId": users[0],
        "name": "Shop", "description": null, "memberIds": [], "state": "active",
        "createdAt": now, "updatedAt": now,
    });
    change = change.create::<Projects>(&ProjectId::of(Ulid(1)), kept(record));
    let nobody = json!({"identifier": null, "signer": null});
    let record = json!({
        "project_id": ProjectId::of(Ulid(1)), "name": "Shop", "platforms": [], "ios": nobody,
        "android": nobody, "deleting": false, "created_at": now, "updated_at": now,
    });
    change = change.create::<Apps>(&AppId::of(Ulid(3)), kept(record));
    world.store.commit(change).await.unwrap();
}

fn kept<R: Resource>(state: serde_json::Value) -> Kept<R> {
    Kept::at_rest(serde_json::from_value(state).unwrap())
}

fn id() -> CredentialId {
    CredentialId::of(Ulid(7))
}

fn new(now: Timestamp, expires_at: Option<Timestamp>) -> New {
    let credential: Credential = serde_json::from_value(json!({
        "id": id(), "appId": AppId::of(Ulid(3)), "kind": "androidKeystore", "name": "upload",
        "facts": {}, "expiresAt": expires_at, "warnings": [], "check": null, "lastUsedAt": null,
        "createdBy": null, "createdAt": now, "updatedAt": now,
    }))
    .unwrap();
    New { credential, secret: serde_json::from_value(json!("sealed")).unwrap() }
}

/// Tells the owner as the sweeper does, and waits for the effect.
async fn warn(world: &World, told: &str) {
    world.to::<Credentials>(id()).tell_if_there(Input::Due).await.unwrap();
    let pending = || {
        let found = world.store.get::<Credentials>(&id()).unwrap();
        found.is_some_and(|found| found.pending().is_some())
    };
    comes_to::<Credentials>(world, id(), told, |_| !pending()).await;
}

/// Whatever the server does, everybody who can be told is told, nobody is told again because
/// somebody else was not, and a crash between loses no mail.
#[test]
fn each_warning_reaches_the_owner_and_the_admins_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = world::clock();
    let mail = Arc::new(Server::default());
    System::new().block_on(async {
        let world = start(folder.path(), &clock, &mail).await;
        people(&world).await;
        let now = world.ports.clock.now();
        world.to::<Credentials>(id()).create(new(now, Some(now + DAY * 100))).await.unwrap();
        warn(&world, "too early").await;
        assert_eq!(mail.delivered.lock().unwrap().len(), 0);

        // One mailbox is gone: the other one is told once.
        clock.advance(DAY * 70);
        *mail.next.lock().unwrap() = vec![(ADMIN, Does::Refuse)];
        warn(&world, "30 days").await;
        warn(&world, "again").await;
        assert_eq!(mail.inbox(OWNER), ["Shop: upload expires within 30 days"]);
        assert_eq!(mail.inbox(ADMIN), [""; 0]);

        // The server is away for a moment: the mails go out later.
        clock.advance(DAY * 23);
        *mail.next.lock().unwrap() =
            vec![(OWNER, Does::Refuse), (ADMIN, Does::Refuse), (OWNER, Does::Refuse)];
        warn(&world, "7 days").await;
        assert!(mail.inbox(ADMIN).contains(&"Shop: upload expires within 7 days".to_owned()));

        // The owner of the credential ends while a mail is under way, and another one goes on.
        clock.advance(DAY * 6);
        *mail.next.lock().unwrap() = vec![(ADMIN, Does::Hang)];
        world.to::<Credentials>(id()).tell_if_there(Input::Due).await.unwrap();
        comes_to::<Credentials>(&world, id(), "the mail is sent", |_| {
            mail.inbox(ADMIN).iter().any(|subject| subject.contains("a day"))
        })
        .await;
        world.to::<Credentials>(id()).restart().await.unwrap();
        warn(&world, "1 day").await;
        assert!(mail.inbox(OWNER).contains(&"Shop: upload expires within a day".to_owned()));

        clock.advance(DAY * 30);
        let before = mail.delivered.lock().unwrap().len();
        warn(&world, "after the end").await;
        assert_eq!(mail.delivered.lock().unwrap().len(), before, "no mail is left");
        assert_eq!(mail.inbox("sue@example.com"), [""; 0]);

        // Another file: it was off until the end, and one mail stands for all.
        let now = world.ports.clock.now();
        let replaced = Box::new(new(now, Some(now + DAY * 40)));
        world.to::<Credentials>(id()).ask(Command::Replace(replaced)).await.unwrap();
        clock.advance(DAY * 50);
        warn(&world, "late").await;
        assert_eq!(mail.inbox(OWNER).last().unwrap(), "Shop: upload has expired");
        assert_eq!(mail.delivered.lock().unwrap().len(), before + 2);
    });
}

/// A check or a use of a file that was replaced meanwhile says nothing about its successor.
#[test]
fn a_check_of_the_file_before_is_not_of_this_one() {
    let at = |now: i64| Moment::<Credentials> { id: id(), now: Timestamp::from_millis(now) };
    let take = |state: &State, now: i64, command: Command| {
        let kept = Kept::at_rest(state.clone());
        let step = step(&at(now), Some(&kept), Input::Command(command))?;
        Ok::<_, Fault>(step.apply(Some(&kept))?.unwrap().state)
    };
    let (first, second) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
    let created = step(&at(1), None, Input::Create(Box::new(new(first, None)))).unwrap();
    let state = created.apply(None).unwrap().unwrap().state;
    let state = take(&state, 2, Command::Replace(Box::new(new(second, None)))).unwrap();
    let check = AccessCheck { at: second, ok: true, text: "It opens.".into() };
    let checked = |stored_at| Command::Checked { stored_at, check: check.clone() };
    assert_eq!(take(&state, 3, checked(first)), Err(Fault::Stale));
    assert_eq!(take(&state, 3, Command::Used { stored_at: first }), Ok(state.clone()));
    let checked = take(&state, 3, checked(second)).unwrap();
    assert_eq!(checked.credential.check, Some(check));
    let used = take(&state, 3, Command::Used { stored_at: second }).unwrap();
    assert_eq!(used.credential.last_used_at, Some(Timestamp::from_millis(3)));
}
