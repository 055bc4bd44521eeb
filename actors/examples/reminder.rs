//! One kind with all its parts: a reminder that rings at its time, also if the program ends before. The kinds
//! of the service have the same parts; for them, the table of kinds writes `impl Record` and `impl Row`.
//!
//! `cargo run -p actors --example reminder`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example for a terminal")]

use actix_rt::{Arbiter, System};
use actors::runtime::{
    directory::Rules,
    entries,
    handle::{Handle, OwnerOf},
    host::Host,
    lone_host::LoneHost,
    manual_clock::ManualClock,
    resource::{Kept, Moment, Resource, Retry, Row, Step, Work},
};
use contract::{Fault, Id, JobId, Timestamp};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Entries, Record, Snapshot, Store};

struct Reminders;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Reminder {
    text: String,
    at: Timestamp,
    has_rung: bool,
}

/// How it is stored, and found again by whoever wakes the owners.
impl Record for Reminders {
    const TREE: &'static str = "reminder";
    const SCHEMA: u16 = 1;
    type Key = JobId;
    type Content = Kept<Reminders>;
    fn index(kept: &Kept<Reminders>) -> Entries<Reminders> {
        entries::of(kept)
    }
}

impl Row for Reminders {
    const NOUN: &'static str = "reminder";
    type Host = LoneHost;
    fn parent_key(_: &Reminder) -> Option<String> {
        None
    }
}

#[derive(Debug, Clone)]
enum Command {
    Snooze(Duration),
}

#[derive(Debug, Clone, PartialEq)]
struct Ring;

#[derive(Debug, Clone)]
struct HasRung;

impl Resource for Reminders {
    type New = Reminder;
    type State = Reminder;
    type Command = Command;
    type Effect = Ring;
    type Outcome = HasRung;

    fn create(_: &Moment<Self>, new: Reminder) -> Result<Step<Self>, Fault> {
        Ok(Step::put(new))
    }

    fn on_command(
        state: Reminder,
        _: &Moment<Self>,
        Command::Snooze(by): Command,
    ) -> Result<Step<Self>, Fault> {
        match state.has_rung {
            true => Err(Fault::NotNow("it has rung: make another one".into())),
            false => Ok(Step::put(Reminder { at: state.at + by, ..state })),
        }
    }

    fn on_outcome(state: Reminder, _: &Moment<Self>, HasRung: HasRung) -> Step<Self> {
        Step::put(Reminder { has_rung: true, ..state })
    }

    /// What is next follows from the state. Nobody sets a timer.
    fn next(state: &Reminder) -> Option<Work<Ring>> {
        (!state.has_rung).then(|| Work::at(state.at, Ring))
    }

    /// May run twice: a crash after it, and before the outcome is written, repeats it.
    fn perform(
        Ring: Ring,
        _: JobId,
        reminder: Snapshot<Self>,
        _: Arc<LoneHost>,
    ) -> LocalBoxFuture<'static, Result<HasRung, Retry>> {
        println!("{}: {}", reminder.at, reminder.text);
        Box::pin(async { Ok(HasRung) })
    }
}

/// A program with owners of reminders on the thread of the caller.
async fn start(store: &Store, clock: &ManualClock) -> (Arc<LoneHost>, Handle<Reminders>) {
    let host = Arc::new(LoneHost::new(store.clone(), clock.port()));
    let owners = Handle::start(&host, &[Arbiter::current()], Rules::default()).await.unwrap();
    (host, owners)
}

fn main() {
    let store = Store::in_memory(&[Reminders::TREE]).unwrap();
    let clock = ManualClock::new("2026-11-25T08:00:00Z".parse().unwrap());
    let (id, minute): (JobId, _) = (Id::of(ulid::Ulid(1)), Duration::from_secs(60));

    System::new().block_on(async {
        let (host, owners) = start(&store, &clock).await;
        let reminder = || OwnerOf::new(Ok(&owners), id, host.store());
        let at = host.clock().now() + minute / 2;
        reminder().create(Reminder { text: "Tea".into(), at, has_rung: false }).await.unwrap();
        reminder().ask(Command::Snooze(minute / 4)).await.unwrap();
    });
    // The program ended before the time. The next one reads the record, and needs no more.
    System::new().block_on(async {
        let (host, owners) = start(&store, &clock).await;
        owners.resume().await;
        actix_rt::spawn(async move {
            loop {
                actix_rt::task::yield_now().await;
                clock.advance(Duration::from_secs(1));
            }
        });
        let rung = OwnerOf::new(Ok(&owners), id, host.store()).wait_idle(minute).await;
        assert!(rung.unwrap().unwrap().has_rung);
    });
}

#[test]
fn it_rings_in_the_second_life() {
    main();
}
