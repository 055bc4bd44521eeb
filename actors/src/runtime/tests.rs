//! Tests of owners under many orders of events: their answers agree with the store, and no caller
//! waits for an effect that has ended.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

use super::{
    directory::Rules,
    entries,
    handle::{Handle, OwnerOf},
    host::Host,
    lone_host::LoneHost,
    manual_clock::ManualClock,
    resource::{Kept, Moment, Resource, Retry, Row, Step, Work},
};
use actix_rt::{Arbiter, System, task::yield_now};
use contract::{Fault, JobId, Timestamp};
use futures_util::future::{LocalBoxFuture, join_all};
use serde::{Deserialize, Serialize};
use std::{
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use store::{Change, Entries, Memory, Merge, Record, Snapshot, Store};
use tokio::sync::Semaphore;

/// A kind with one effect. The test decides when the effect ends.
struct Probe;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    working: bool,
    count: u32,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Begin,
    /// Changes nothing.
    Look,
    Add,
    Panic,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Effort;

#[derive(Debug, Clone)]
struct Done;

/// An effect adds a permit to `begun` when it begins, and ends when it gets a permit from `end`.
#[derive(Clone)]
struct Gate {
    begun: Rc<Semaphore>,
    end: Rc<Semaphore>,
}

thread_local! {
    static GATE: Gate =
        Gate { begun: Rc::new(Semaphore::new(0)), end: Rc::new(Semaphore::new(0)) };
}

impl Record for Probe {
    const TREE: &'static str = "probe";
    const SCHEMA: u16 = 1;
    type Key = JobId;
    type Content = Kept<Probe>;
    fn index(kept: &Kept<Probe>) -> Entries<Probe> {
        entries::of(kept)
    }
}

impl Row for Probe {
    const NOUN: &'static str = "probe";
    type Host = LoneHost;
    fn parent_key(_: &State) -> Option<String> {
        None
    }
}

impl Resource for Probe {
    type New = ();
    type State = State;
    type Command = Command;
    type Effect = Effort;
    type Outcome = Done;

    fn create(_: &Moment<Self>, (): ()) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { working: false, count: 0 }))
    }

    fn on_command(state: State, _: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Begin => Step::put(State { working: true, ..state }),
            Command::Look => Step::keep(),
            Command::Add => Step::put(State { count: state.count + 1, ..state }),
            Command::Panic => panic!("asked to"),
        })
    }

    fn on_outcome(state: State, _: &Moment<Self>, Done: Done) -> Step<Self> {
        Step::put(State { working: false, count: state.count + 1 })
    }

    fn next(state: &State) -> Option<Work<Effort>> {
        state.working.then(|| Work::now(Effort))
    }

    fn perform(
        Effort: Effort,
        _: JobId,
        _: Snapshot<Self>,
        _: Arc<LoneHost>,
    ) -> LocalBoxFuture<'static, Result<Done, Retry>> {
        Box::pin(async {
            let gate = GATE.with(Clone::clone);
            gate.begun.add_permits(1);
            gate.end.acquire().await?.forget();
            Ok(Done)
        })
    }
}

/// As long as the disk of a busy machine may take.
const WITHIN: Duration = Duration::from_secs(60);

/// A record whose write blocks the store until the test releases it.
#[derive(Clone, Serialize, Deserialize)]
struct Hold;

impl Record for Hold {
    const TREE: &'static str = "hold";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

impl Merge for Hold {
    type Delta = Mutex<mpsc::Receiver<()>>;
    fn merge(_: Option<Self>, until: &Self::Delta) -> Option<Self> {
        let _ = until.lock().unwrap().recv();
        None
    }
}

struct Scene {
    program: Arc<LoneHost>,
    owners: Handle<Probe>,
    made: u128,
}

impl Scene {
    /// Runs a test whose owners live on the thread of the test.
    fn run<F: Future<Output = ()>>(test: impl FnOnce(Scene) -> F) {
        Self::run_with(WITHIN, test);
    }

    /// Runs a test with this limit for writes.
    fn run_with<F: Future<Output = ()>>(write_within: Duration, test: impl FnOnce(Scene) -> F) {
        let folder = tempfile::tempdir().unwrap();
        System::new().block_on(async {
            let trees = [Probe::TREE, Hold::TREE];
            let store = Store::open(folder.path(), &trees, Memory::default()).unwrap();
            let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
            let program = Arc::new(LoneHost::new(store, clock.port()));
            actix_rt::spawn(time_passes(clock));
            let rules = Rules { answer_within: WITHIN, write_within, ..Rules::default() };
            let arbiters = [Arbiter::current()];
            let owners = Handle::start(&program, &arbiters, rules).await.unwrap();
            test(Scene { program, owners, made: 0 }).await;
        });
    }

    fn to(&self, id: JobId) -> OwnerOf<'_, Probe> {
        OwnerOf::new(Ok(&self.owners), id, self.program.store())
    }

    async fn create(&mut self) -> JobId {
        self.made += 1;
        let id = contract::Id::of(ulid::Ulid(self.made));
        // On a busy machine, the disk may be slower than the limit for writes.
        while let Err(fault) = self.to(id).create(()).await {
            assert_eq!(fault, Fault::Uncertain);
        }
        id
    }

    fn stored(&self, id: JobId) -> Snapshot<Probe> {
        self.program.store().get::<Probe>(&id).unwrap().unwrap()
    }

    /// Writes the record without its owner.
    async fn write(&self, id: JobId, state: State) {
        let before = self.stored(id);
        let after = Kept { awake: state.working, ..Kept::at_rest(state) };
        let change = Change::new().replace::<Probe>(&id, Some(before.as_ref()), after);
        self.program.store().commit(change).await.unwrap();
    }

    /// Checks that the memory of the owner agrees with the store, and that no effect is pending.
    async fn check(&self, id: JobId, told: &str) {
        let idle = self.to(id).wait_idle(WITHIN).await;
        let idle = idle.unwrap_or_else(|e| panic!("{told}: it never becomes idle: {e}")).unwrap();
        let answered = self.to(id).ask(Command::Look).await.unwrap();
        let stored = self.stored(id);
        assert_eq!(*answered, stored.state, "{told}");
        assert_eq!(*idle, stored.state, "{told}");
        assert!(!stored.state.working && stored.pending().is_none(), "{told}");
    }
}

#[allow(clippy::disallowed_methods, reason = "the store's thread is waited for")]
async fn time_passes(clock: ManualClock) {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        clock.advance_to_next(Duration::from_millis(10));
    }
}

async fn until_work_begins() {
    GATE.with(Clone::clone).begun.acquire().await.unwrap().forget();
}

fn end_work() {
    GATE.with(|gate| gate.end.add_permits(1));
}

/// Waits for `count` turns of this thread.
async fn turns(count: usize) {
    for _ in 0..count {
        yield_now().await;
    }
}

#[test]
fn commands_that_come_while_an_effect_ends() {
    Scene::run(|mut scene| async move {
        // The commands come one by one, in threes or at once. The effect ends before, between or
        // after them.
        for (burst, ends_at) in [1, 3, 12].into_iter().flat_map(|b| (0..16).map(move |e| (b, e))) {
            for every in [usize::MAX, 4, 1] {
                let told = format!("{burst} at a time, ends at {ends_at}, every {every}th adds");
                let id = scene.create().await;
                scene.to(id).ask(Command::Begin).await.unwrap();
                until_work_begins().await;
                let scene = &scene;
                let asked = (0..12_usize).map(|n| async move {
                    turns(n / burst).await;
                    let command = if (n + 1) % every == 0 { Command::Add } else { Command::Look };
                    scene.to(id).ask(command).await.map(|state| state.count)
                });
                let ending = async {
                    turns(ends_at).await;
                    end_work();
                };
                let (answers, ()) = futures_util::future::join(join_all(asked), ending).await;
                let answers: Result<Vec<_>, _> = answers.into_iter().collect();
                let answers = answers.unwrap_or_else(|e| panic!("{told}: {e}"));
                assert!(answers.is_sorted(), "{told}: {answers:?}");
                scene.check(id, &told).await;
            }
        }
    });
}

#[test]
fn a_record_that_somebody_else_wrote() {
    Scene::run(|mut scene| async move {
        let other = State { working: false, count: 100 };
        // A command that changes nothing sees the write.
        let id = scene.create().await;
        scene.write(id, other.clone()).await;
        assert_eq!(*scene.to(id).ask(Command::Look).await.unwrap(), other);
        scene.check(id, "written").await;
        // The owner runs an effect that another writer made pending.
        let id = scene.create().await;
        scene.write(id, State { working: true, count: 100 }).await;
        assert!(scene.to(id).ask(Command::Look).await.unwrap().working);
        end_work();
        scene.check(id, "given work").await;
        assert_eq!(scene.stored(id).state.count, 101);
        // The same, if the owner notices it only through a caller that waits for idle.
        let id = scene.create().await;
        scene.write(id, State { working: true, count: 100 }).await;
        end_work();
        scene.check(id, "waited for").await;
        assert_eq!(scene.stored(id).state.count, 101);
        // A caller does not wait for an effect that another writer removed.
        let id = scene.create().await;
        scene.to(id).ask(Command::Begin).await.unwrap();
        scene.write(id, other.clone()).await;
        scene.check(id, "taken away").await;
    });
}

#[test]
fn who_waits_for_a_state_does_not_wait_for_the_effect_that_follows() {
    Scene::run(|mut scene| async move {
        let id = scene.create().await;
        let wait = scene.to(id).wait_until(WITHIN, |state| state.working);
        assert!(!wait.await.unwrap().unwrap().working, "nothing is pending");
        scene.to(id).ask(Command::Begin).await.unwrap();
        let counts = scene.to(id).wait_until(WITHIN, |state| state.count == 1);
        let add = async {
            until_work_begins().await;
            scene.to(id).ask(Command::Add).await.unwrap();
        };
        let (counted, ()) = futures_util::future::join(counts, add).await;
        assert_eq!(*counted.unwrap().unwrap(), State { working: true, count: 1 });
        end_work();
        scene.check(id, "the effect ends later").await;
    });
}

#[test]
fn commands_behind_one_that_panics_are_answered() {
    Scene::run(|mut scene| async move {
        let id = scene.create().await;
        let commands = [Command::Add, Command::Panic, Command::Add, Command::Begin, Command::Look];
        let answers = join_all(commands.map(|command| scene.to(id).ask(command))).await;
        let counts: Vec<_> = answers.iter().map(|a| a.as_ref().map(|state| state.count)).collect();
        assert_eq!(counts, [Ok(1), Err(&Fault::Uncertain), Ok(2), Ok(2), Ok(2)]);
        end_work();
        scene.check(id, "after a panic").await;
    });
}

#[test]
fn a_write_of_which_nobody_knows_whether_it_was_done() {
    Scene::run_with(Duration::from_millis(200), |mut scene| async move {
        // The outcome of an effect, or a command that starts one, is written late.
        for begin in [false, true] {
            let id = scene.create().await;
            if !begin {
                scene.to(id).ask(Command::Begin).await.unwrap();
                until_work_begins().await;
            }
            let (go_on, until) = mpsc::channel();
            scene
                .program
                .store()
                .note(Change::new().merge::<Hold>(&"hold".into(), Mutex::new(until)));
            let command = if begin { Command::Begin } else { Command::Add };
            let answer = scene.to(id).ask(command).await.map(|state| state.count);
            assert_eq!(answer, Err(Fault::Uncertain));
            let answer = scene.to(id).ask(Command::Look).await.map(|state| state.count);
            assert_eq!(answer, Err(Fault::Busy), "it does not answer from memory");
            go_on.send(()).unwrap();
            end_work();
            scene.check(id, "written late").await;
            assert_eq!(scene.stored(id).state.count, if begin { 1 } else { 2 });
        }
    });
}
