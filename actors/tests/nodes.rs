//! Owners on several nodes that share one store: any node decides, and one acts.

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
use futures_util::future::{LocalBoxFuture, join_all};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};
use store::{Entries, Event, Memory, Nodes, Postgres, Record, Snapshot, Store};
use tempfile::TempDir;
use ulid::Ulid;

/// As long as a busy machine may take.
const WITHIN: Duration = Duration::from_secs(120);

/// A kind whose effect works off what was asked for, one after the other.
struct Tasks;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    asked: u32,
    done: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ask;

/// The number of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Do(u32);

#[derive(Debug, Clone)]
struct Done(u32);

/// What the owners of all nodes did.
#[derive(Default)]
struct Deeds {
    /// By whom a task is being done now.
    under_way: HashMap<JobId, Arc<LoneHost>>,
    /// By whom each task was begun, in order.
    begun: HashMap<(JobId, u32), Vec<usize>>,
    /// The resources for which two have acted at the same time.
    shared: Vec<JobId>,
}

static DEEDS: LazyLock<Mutex<Deeds>> = LazyLock::new(Mutex::default);

impl Record for Tasks {
    const TREE: &'static str = "tasks";
    const SCHEMA: u16 = 1;
    type Key = JobId;
    type Content = Kept<Tasks>;
    fn index(kept: &Kept<Tasks>) -> Entries<Tasks> {
        entries::of(kept)
    }
}

impl Row for Tasks {
    const NOUN: &'static str = "tasks";
    type Host = LoneHost;
    fn parent_key(_: &State) -> Option<String> {
        None
    }
}

impl Resource for Tasks {
    type New = ();
    type State = State;
    type Command = Ask;
    type Effect = Do;
    type Outcome = Done;

    fn create(_: &Moment<Self>, (): ()) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { asked: 0, done: 0 }))
    }

    fn on_command(state: State, _: &Moment<Self>, Ask: Ask) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { asked: state.asked + 1, ..state }))
    }

    fn on_outcome(state: State, _: &Moment<Self>, Done(done): Done) -> Step<Self> {
        Step::put(State { done, ..state })
    }

    fn next(state: &State) -> Option<Work<Do>> {
        (state.done < state.asked).then(|| Work::now(Do(state.done + 1)))
    }

    fn perform(
        Do(number): Do,
        id: JobId,
        _: Snapshot<Self>,
        host: Arc<LoneHost>,
    ) -> LocalBoxFuture<'static, Result<Done, Retry>> {
        Box::pin(async move {
            let _under_way = UnderWay::begin(id, number, &host);
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok(Done(number))
        })
    }
}

/// A task while it is done. Nobody else may do one of the same resource meanwhile.
struct UnderWay(JobId);

impl UnderWay {
    fn begin(id: JobId, number: u32, node: &Arc<LoneHost>) -> Self {
        let mut deeds = DEEDS.lock().unwrap();
        // Work that has lost its lease may be there until it is polled.
        let other = deeds.under_way.insert(id, node.clone());
        if other.is_some_and(|other| other.store().lease::<Tasks>(&id).is_some()) {
            deeds.shared.push(id);
        }
        let name = Arc::as_ptr(node) as usize;
        deeds.begun.entry((id, number)).or_default().push(name);
        UnderWay(id)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        DEEDS.lock().unwrap().under_way.remove(&self.0);
    }
}

struct Node {
    host: Arc<LoneHost>,
    owners: Handle<Tasks>,
    hears: actix_rt::task::JoinHandle<()>,
    _folder: TempDir,
}

impl Node {
    async fn start(address: &str, clock: &ManualClock) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let (address, path) = (Postgres::parse(address).unwrap(), folder.path().to_owned());
        let connect = move || {
            Store::connect(&address, Nodes::Several, &path, &[Tasks::TREE], Memory::default())
        };
        let store = actix_rt::task::spawn_blocking(connect).await.unwrap().unwrap();
        let host = Arc::new(LoneHost::new(store, clock.port()));
        let rules = Rules { answer_within: WITHIN, write_within: WITHIN, ..Rules::default() };
        let owners = Handle::start(&host, &[Arbiter::current()], rules).await.unwrap();
        let hears = actix_rt::spawn(hear(host.clone(), owners.clone()));
        Node { host, owners, hears, _folder: folder }
    }

    fn to(&self, id: JobId) -> OwnerOf<'_, Tasks> {
        OwnerOf::new(Ok(&self.owners), id, self.host.store())
    }

    fn name(&self) -> usize {
        Arc::as_ptr(&self.host) as usize
    }

    /// Ends the store as a stop does, while the owners are at work.
    async fn end(&self) {
        let store = self.host.store().raw().clone();
        actix_rt::task::spawn_blocking(move || store.close()).await.unwrap();
        self.hears.abort();
    }
}

async fn hear(host: Arc<LoneHost>, owners: Handle<Tasks>) {
    let mut others = host.store().others();
    let mut event = Event::Leases;
    loop {
        match event {
            Event::Record { key, .. } => owners.written_by_other(key.parse().unwrap()).await,
            Event::Many | Event::Leases => owners.resume().await,
        }
        event = others.next().await;
    }
}

async fn time_passes(clock: ManualClock) {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        clock.advance_to_next(Duration::from_millis(10));
    }
}

/// Whichever node is asked, each task is done, by one node at a time, and all nodes see it. Once without
/// changes of the nodes; then one joins, and one ends while it works.
#[test]
fn any_node_decides_and_one_acts() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    System::new().block_on(async {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        actix_rt::spawn(time_passes(clock.clone()));
        let mut nodes =
            vec![Node::start(&address, &clock).await, Node::start(&address, &clock).await];
        let shared = |nodes: &[Node]| {
            let held = nodes.iter().map(|node| node.host.store().leases().len());
            held.sum::<usize>() == 256 && nodes.iter().all(|n| !n.host.store().leases().is_empty())
        };
        until("the nodes share", || shared(&nodes)).await;
        let ids: Vec<JobId> = (1..=16).map(|n| JobId::of(Ulid(n))).collect();
        join_all(ids.iter().map(|id| nodes[0].to(*id).create(()))).await;
        for node in &nodes {
            node.host.store().fence().await.unwrap();
        }

        let leases = || nodes.iter().map(|node| node.host.store().leases()).collect::<Vec<_>>();
        let before = leases();
        ask(&nodes, &ids, 5).await;
        for node in &nodes {
            assert_done(node, &ids, 5).await;
        }
        let by = |node: &Node| {
            let deeds = DEEDS.lock().unwrap();
            let is_once = deeds.begun.values().all(|begun| begun.len() == 1);
            assert!(is_once || leases() != before, "each was done once");
            deeds.begun.values().filter(|begun| begun[0] == node.name()).count()
        };
        assert!(nodes.iter().all(|node| by(node) > 0), "both have acted");

        let joins = async {
            let third = Node::start(&address, &clock).await;
            until("the third acts", || !third.host.store().leases().is_empty()).await;
            third
        };
        let (third, ()) = futures_util::future::join(joins, ask(&nodes, &ids, 20)).await;
        nodes.push(third);
        let ending = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            nodes[0].end().await;
        };
        futures_util::future::join(ask(&nodes[1..], &ids, 20), ending).await;
        for node in &nodes[1..] {
            assert_done(node, &ids, 45).await;
        }
        assert_eq!(DEEDS.lock().unwrap().shared, []);
    });
}

/// Asks each of the nodes in turn.
async fn ask(nodes: &[Node], ids: &[JobId], times: u32) {
    let asked = ids.iter().enumerate().map(|(n, id)| async move {
        for time in 0..times as usize {
            nodes[(n + time) % nodes.len()].to(*id).ask(Ask).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    join_all(asked).await;
}

async fn assert_done(node: &Node, ids: &[JobId], times: u32) {
    for id in ids {
        let idle = node.to(*id).wait_idle(WITHIN).await.unwrap().unwrap();
        assert_eq!(*idle, State { asked: times, done: times }, "{id}");
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WITHIN, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
