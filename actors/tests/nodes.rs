//! Owners on several nodes that share one store: any node decides, and one acts.

use actix_rt::{Arbiter, System};
use actors::{
    installation::engine::{self, KnownEngine},
    runtime::{
        directory::Rules,
        entries,
        handle::{Handle, OwnerOf},
        host::Host,
        lone_host::LoneHost,
        manual_clock::ManualClock,
        redecide::redecided,
        resource::{Kept, Moment, Resource, Retry, Row, Step, Work},
    },
};
use contract::{Fault, Id, JobId, Timestamp};
use futures_util::future::{LocalBoxFuture, join_all};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
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
    /// What a task works towards. Its work does not say so.
    aim: u32,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    /// Do one more task.
    Ask,
    /// The task under way has to begin anew, with this aim.
    Aim(u32),
}

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
    /// The aim of the last task that was done for each resource.
    aims: HashMap<JobId, u32>,
}

/// The aim that counts.
const LAST_AIM: u32 = 4;
static LAST_AIM_IS_KNOWN: AtomicBool = AtomicBool::new(false);

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
    type Command = Command;
    type Effect = Do;
    type Outcome = Done;

    fn create(_: &Moment<Self>, (): ()) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { asked: 0, done: 0, aim: 0 }))
    }

    fn on_command(state: State, _: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Ask => Step::put(State { asked: state.asked + 1, ..state }),
            Command::Aim(aim) => Step::put(State { aim, ..state }).anew(Duration::ZERO),
        })
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
        kept: Snapshot<Self>,
        host: Arc<LoneHost>,
    ) -> LocalBoxFuture<'static, Result<Done, Retry>> {
        Box::pin(async move {
            let _under_way = UnderWay::begin(id, number, &host);
            let aim = kept.state.aim;
            tokio::time::sleep(Duration::from_millis(2)).await;
            // What works towards an early aim ends only once the last aim is known.
            while (1..LAST_AIM).contains(&aim) && !LAST_AIM_IS_KNOWN.load(Relaxed) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            DEEDS.lock().unwrap().aims.insert(id, aim);
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
        let acts = |other: &Arc<LoneHost>| other.store().lease::<Tasks>(&id).is_some();
        if other.is_some_and(|other| !Arc::ptr_eq(&other, node) && acts(&other)) {
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
            Store::connect(
                &address,
                Nodes::Several,
                &path,
                &[Tasks::TREE, KnownEngine::TREE],
                Memory::default(),
            )
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

/// Two nodes on this database, which share the work, and their clock.
async fn two_nodes(address: &str) -> (ManualClock, Vec<Node>) {
    let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
    actix_rt::spawn(time_passes(clock.clone()));
    let nodes = vec![Node::start(address, &clock).await, Node::start(address, &clock).await];
    let held = |node: &Node| node.host.store().leases().len();
    until("the nodes share", || {
        nodes.iter().map(held).sum::<usize>() == 256 && nodes.iter().all(|node| held(node) > 0)
    })
    .await;
    (clock, nodes)
}

/// Whichever node is asked, each task is done, by one node at a time, and all nodes see it. Once without
/// changes of the nodes; then one joins, and one ends while it works.
#[test]
fn any_node_decides_and_one_acts() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    System::new().block_on(async {
        let (clock, mut nodes) = two_nodes(&address).await;
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
            let begun = deeds.begun.iter().filter(|((id, _), _)| ids.contains(id));
            let begun: Vec<_> = begun.map(|(_, by)| by).collect();
            let is_once = begun.iter().all(|by| by.len() == 1);
            assert!(is_once || leases() != before, "each was done once");
            begun.iter().filter(|by| by[0] == node.name()).count()
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

/// What is changed at one node begins anew at the one that acts, which has begun the same work for what was before.
#[test]
fn work_that_begins_anew_is_not_ended_by_the_outcome_of_what_was_before() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    System::new().block_on(async {
        let (_, nodes) = two_nodes(&address).await;
        let ids: Vec<JobId> = (101..=116).map(|n| JobId::of(Ulid(n))).collect();
        join_all(ids.iter().map(|id| async {
            nodes[0].to(*id).create(()).await.unwrap();
            command(&nodes[0], *id, Command::Aim(1)).await;
            command(&nodes[0], *id, Command::Ask).await;
            for (node, aim) in [(1, 2), (0, 3), (1, LAST_AIM)] {
                tokio::time::sleep(Duration::from_millis(20)).await;
                nodes[node].host.store().fence().await.unwrap();
                command(&nodes[node], *id, Command::Aim(aim)).await;
            }
        }))
        .await;
        LAST_AIM_IS_KNOWN.store(true, Relaxed);
        for node in &nodes {
            assert_done(node, &ids, 1).await;
        }
        let deeds = DEEDS.lock().unwrap();
        for id in &ids {
            assert_eq!(deeds.aims[id], LAST_AIM, "{id}");
        }
    });
}

/// Of two engines that two nodes find at the same moment, one is the engine of both.
#[test]
fn nodes_agree_on_one_engine() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    System::new().block_on(async {
        let (_, nodes) = two_nodes(&address).await;
        let stores = [nodes[0].host.store(), nodes[1].host.store()];
        assert!(engine::recognize(stores[0], "").await.is_err(), "an engine without a name");
        let finds = async |n: usize| {
            let id = ["one", "two"][n % 2];
            // An engine that was found at the same moment is looked at again.
            while let Err(why) = engine::recognize(stores[n % 2], id).await {
                if !why.contains("same moment") {
                    return Err(why);
                }
            }
            Ok(id)
        };
        let found = join_all((0..16).map(finds)).await;
        let taken: HashSet<_> = found.iter().flatten().collect();
        assert_eq!(taken.len(), 1, "{found:?}");
        let refused: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
        assert_eq!(refused.len(), 8, "{found:?}");
        assert!(refused.iter().all(|why| why.contains("svc admin forget-engine")), "{refused:?}");
        let forgotten = engine::forget(stores[0].raw()).await.unwrap();
        assert_eq!(forgotten.as_deref(), taken.into_iter().next().copied());
        assert_eq!(engine::recognize(stores[1], "three").await, Ok(()));
    });
}

/// Sends a command as a call does: again, if another node was faster too often.
async fn command(node: &Node, id: JobId, command: Command) {
    redecided(async || node.to(id).ask(command).await).await.unwrap();
}

/// Asks each of the nodes in turn.
async fn ask(nodes: &[Node], ids: &[JobId], times: u32) {
    let asked = ids.iter().enumerate().map(|(n, id)| async move {
        for time in 0..times as usize {
            command(&nodes[(n + time) % nodes.len()], *id, Command::Ask).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    join_all(asked).await;
}

async fn assert_done(node: &Node, ids: &[JobId], times: u32) {
    node.host.store().fence().await.unwrap();
    for id in ids {
        let idle = node.to(*id).wait_idle(WITHIN).await.unwrap().unwrap();
        assert_eq!((idle.asked, idle.done), (times, times), "{id}");
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WITHIN, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
