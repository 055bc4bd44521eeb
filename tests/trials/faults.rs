//! What goes wrong with nodes, their network and their databases, one or two things at a time.

use crate::support::service::{Service, eventually};
use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, Instant},
};
use test_support::{
    network::{Network, Target},
    postgres::{self, Server},
};

pub const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
const DATABASES: [&str; 2] = ["db-1", "db-2"];
const DATABASE_PORT: u16 = 5432;

/// How far the clock of a node that starts again is ahead, in seconds.
const CLOCKS: std::ops::Range<u64> = 0..4;
/// How many of a hundred packets are lost where some are.
const LOST: u8 = 10;
/// How fast a slow link is, in kilobits a second.
const SLOW: u32 = 256;

/// Something that goes wrong for a while. Nodes have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The node is killed, and starts again with a clock of its own.
    Kill(usize),
    /// The node is told to stop, and starts again.
    Stop(usize),
    /// The node gets no processor.
    Freeze(usize),
    LosePackets(usize),
    /// Its link is slow.
    SlowDown(usize),
    CutOff(usize),
    CutFromDatabases(usize),
    CutFromBucket(usize),
    /// The first database is killed. The second one takes its place, and gets a new standby.
    FailOver,
    KillStandby,
    CutReplication,
    /// The disk of the first database is full.
    FillDisk,
}

impl Fault {
    fn any(random: &mut fastrand::Rng) -> Fault {
        let node = random.usize(..NODES.len());
        match random.u8(0..16) {
            0..2 => Fault::Kill(node),
            2 => Fault::Stop(node),
            3..5 => Fault::Freeze(node),
            5 => Fault::LosePackets(node),
            6 => Fault::CutOff(node),
            7..9 => Fault::CutFromDatabases(node),
            9 => Fault::CutFromBucket(node),
            10 => Fault::FailOver,
            11 => Fault::KillStandby,
            12 => Fault::CutReplication,
            13 => Fault::SlowDown(node),
            _ => Fault::FillDisk,
        }
    }

    /// The node that it befalls. `None`: the databases.
    fn node(self) -> Option<usize> {
        use Fault::{
            CutFromBucket, CutFromDatabases, CutOff, CutReplication, FailOver, FillDisk, Freeze,
            Kill, KillStandby, LosePackets, SlowDown, Stop,
        };
        match self {
            Kill(node)
            | Stop(node)
            | Freeze(node)
            | LosePackets(node)
            | SlowDown(node)
            | CutOff(node)
            | CutFromDatabases(node)
            | CutFromBucket(node) => Some(node),
            FailOver | KillStandby | CutReplication | FillDisk => None,
        }
    }

    /// Its name, without the node.
    fn name(self) -> String {
        format!("{self:?}").split('(').next().unwrap_or_default().to_owned()
    }
}

/// A service of three nodes, a database with a synchronous standby, and the network between all of them.
pub struct World {
    // Ends first, while the databases are there.
    pub service: Service,
    databases: Databases,
    network: Network,
    /// How often each fault was there.
    pub faults: BTreeMap<String, u32>,
    /// The longest time after a fault until all nodes were ready.
    pub longest_recovery: Duration,
}

struct Databases {
    /// The one that takes writes. `None` only while the standby takes its place.
    first: Option<Server>,
    standby: Server,
    /// The places of the first one and of the standby.
    places: [&'static str; 2],
}

impl World {
    /// A world whose service has these settings too, and runs. `None`: this test is left out.
    pub fn new(
        test: &str,
        settings: impl FnOnce(&Network) -> Vec<(&'static str, String)>,
    ) -> Option<World> {
        postgres::shared(test)?;
        let network = Network::of(test, &[&NODES[..], &DATABASES[..]].concat())?;
        let places = DATABASES.map(|name| network.place(name));
        let store = postgres::address_at(&places, "svc");
        let [place, other] = places.map(Some);
        let first = Server::start_at(place);
        let standby = first.standby_at(other, true);
        let mut settings = settings(&network);
        settings.push(("SVC_STORE", store));
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut service = Service::on_network(&network, &NODES, &settings);
        service.begin();
        let databases = Databases { first: Some(first), standby, places: DATABASES };
        let (faults, longest_recovery) = Default::default();
        Some(World { service, databases, network, faults, longest_recovery })
    }

    /// One fault for a while, or one of a node and one of another node or of the databases at the same time. Returns
    /// when all nodes are ready again.
    pub fn round(&mut self, random: &mut fastrand::Rng) {
        let mut faults = vec![Fault::any(random)];
        if random.u8(0..3) == 0 {
            let second = Fault::any(random);
            if second.node() != faults[0].node() {
                faults.push(second);
            }
        }
        for fault in &faults {
            *self.faults.entry(fault.name()).or_default() += 1;
            self.begin(*fault);
            sleep(Duration::from_millis(random.u64(0..2_000)));
        }
        sleep(Duration::from_millis(random.u64(0..10_000)));
        // Those of the databases end first: a node starts only where they are there.
        faults.sort_by_key(|fault| fault.node());
        for fault in &faults {
            self.end(*fault, random);
        }
        let over = Instant::now();
        // A node that starts while the databases are not yet back ends, and a supervisor starts it again.
        let starting =
            faults.iter().filter(|fault| matches!(fault, Fault::Kill(_) | Fault::Stop(_)));
        let starting: Vec<_> = starting.filter_map(|fault| fault.node()).collect();
        eventually(&format!("all nodes are ready after {faults:?}"), || self.are_ready(&starting));
        self.longest_recovery = self.longest_recovery.max(over.elapsed());
        sleep(Duration::from_millis(random.u64(500..4_000)));
    }

    /// Whether all nodes are ready. Those of these that ended are started again.
    fn are_ready(&mut self, starting: &[usize]) -> bool {
        for (node, status) in self.service.ended_nodes() {
            let may_end = starting.contains(&node);
            assert!(may_end, "node {node}: {status}\n{}", self.service.last_words());
            self.service.begin_node(node);
        }
        (0..NODES.len()).all(|node| {
            let ready = format!("{}/readyz", self.service.address_of(node));
            let asked = self.service.http.get(ready).timeout(Duration::from_secs(2));
            asked.send().is_ok_and(|answer| answer.status() == 200)
        })
    }

    fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(node) => self.service.kill_node(node),
            Fault::Stop(node) => self.service.stop_node(node),
            Fault::Freeze(node) => self.service.signal_node(node, "STOP"),
            Fault::LosePackets(node) => self.network.lose(NODES[node], LOST),
            Fault::SlowDown(node) => self.network.slow_down(NODES[node], SLOW),
            Fault::CutOff(node) => self.network.cut(NODES[node], &[Target::All]),
            Fault::CutFromDatabases(node) => {
                let those = DATABASES.map(|name| Target::Address(self.network.place(name).address));
                self.network.cut(NODES[node], &those);
            }
            Fault::CutFromBucket(node) => {
                let bucket = self.service.bucket().address;
                let bucket = Target::Port(bucket.ip().to_string(), bucket.port());
                self.network.cut(NODES[node], &[bucket]);
            }
            Fault::FailOver => self.databases.first.as_mut().unwrap().kill(),
            Fault::KillStandby => self.databases.standby.kill(),
            Fault::FillDisk => self.databases.first.as_ref().unwrap().fill(),
            Fault::CutReplication => {
                let [first, standby] = self.databases.places;
                let port = Target::Port(self.network.place(first).address, DATABASE_PORT);
                self.network.cut(standby, &[port]);
            }
        }
    }

    fn end(&mut self, fault: Fault, random: &mut fastrand::Rng) {
        match fault {
            Fault::Kill(node) | Fault::Stop(node) => {
                self.service.set("SVC_CLOCK_AHEAD", &random.u64(CLOCKS).to_string());
                self.service.begin_node(node);
            }
            Fault::Freeze(node) => self.service.signal_node(node, "CONT"),
            Fault::LosePackets(node)
            | Fault::SlowDown(node)
            | Fault::CutOff(node)
            | Fault::CutFromDatabases(node)
            | Fault::CutFromBucket(node) => self.network.heal(NODES[node]),
            Fault::FailOver => self.databases.fail_over(&self.network),
            Fault::KillStandby => self.databases.standby.start_again(),
            Fault::CutReplication => self.network.heal(self.databases.places[1]),
            Fault::FillDisk => self.databases.first.as_mut().unwrap().free(),
        }
    }
}

impl Databases {
    fn fail_over(&mut self, network: &Network) {
        self.standby.promote();
        // Its folder is removed, and its place becomes that of the new standby.
        self.first = None;
        self.places.swap(0, 1);
        let standby = self.standby.standby_at(Some(network.place(self.places[1])), true);
        self.first = Some(std::mem::replace(&mut self.standby, standby));
    }
}
