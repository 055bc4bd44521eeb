//! A service of several nodes behind a balancer: the nodes share a database and a bucket.

use super::{LONGEST, Service};
use crate::support::{bucket::Bucket, ports::free_port, requires};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use test_support::{
    network::{Network, Place},
    postgres,
};

/// With this variable, every service runs on so many nodes: `make test-cluster`.
const ON_NODES: &str = "TEST_ON_NODES";

/// The address from which the balancer connects on this machine. Clients of tests have others.
const BALANCER: &str = "127.0.0.9";

pub(super) struct Cluster {
    bucket: Bucket,
    balancer: Option<Child>,
    /// The address from which the balancer connects.
    source: String,
    pub(super) nodes: Vec<Node>,
}

/// A process of the service.
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) port: u16,
    pub(super) dashboard_port: u16,
    pub(super) child: Option<Child>,
}

/// How many nodes a service has, if it has several.
pub(super) fn wanted() -> Option<usize> {
    let wanted = std::env::var(ON_NODES).ok()?;
    Some(wanted.parse().expect("TEST_ON_NODES is a number"))
}

impl Service {
    /// Starts a service of so many nodes, in a new empty directory. `None`: what it needs is missing, and this test
    /// is left out.
    pub fn on_nodes(test: &str, count: usize) -> Option<Service> {
        Self::on_nodes_with(test, count, &[])
    }

    /// Like [`on_nodes`](Service::on_nodes), with these settings.
    pub fn on_nodes_with(test: &str, count: usize, settings: &[(&str, &str)]) -> Option<Service> {
        if !requires::programs(test, &["haproxy"]) {
            return None;
        }
        let store = postgres::new_store(test)?;
        let mut service = Self::alone(&[&[("SVC_STORE", store.as_str())], settings].concat());
        service.spread(count);
        service.boot();
        service.learn_its_id();
        Some(service)
    }

    /// Makes a service with nodes at these places of a network, and its bucket and balancer on the machine. Nobody
    /// has started it.
    pub fn on_network(network: &Network, places: &[&str], settings: &[(&str, &str)]) -> Service {
        let mut service = Self::alone(settings);
        let places = places.iter().map(|place| network.place(place)).collect();
        let machine = network.machine().address;
        service.spread_over(places, Bucket::start_at(machine.parse().unwrap()), machine);
        service
    }

    /// Starts a service of several nodes that nobody has started.
    pub fn begin(&mut self) {
        self.boot();
        self.learn_its_id();
    }

    /// Makes this a service of so many nodes.
    pub(super) fn spread(&mut self, count: usize) {
        self.spread_over(vec![Place::here(); count], Bucket::start(), BALANCER.into());
    }

    fn spread_over(&mut self, places: Vec<Place>, bucket: Bucket, source: String) {
        let mut settings: Vec<(&str, String)> = bucket.settings().to_vec();
        settings.extend([
            ("SVC_NODES", "several".into()),
            ("SVC_PUBLIC_URL", self.url.clone()),
            ("SVC_DASHBOARD_URL", self.dashboard()),
            ("SVC_TRUSTED_PROXIES", source.clone()),
        ]);
        for (name, value) in settings {
            if !self.has(name) {
                self.set(name, &value);
            }
        }
        if !self.has("SVC_STORE") {
            self.set("SVC_STORE", &postgres::new_store("a service").unwrap());
        }
        let node =
            |place| Node { place, port: free_port(), dashboard_port: free_port(), child: None };
        let nodes = places.into_iter().map(node).collect();
        self.cluster = Some(Cluster { bucket, balancer: None, source, nodes });
    }

    /// The bucket that the nodes share.
    pub fn bucket(&mut self) -> &mut Bucket {
        &mut self.cluster.as_mut().expect("a service of several nodes").bucket
    }

    /// The address of a node, past the balancer.
    pub fn address_of(&self, node: usize) -> String {
        let node = &self.cluster.as_ref().expect("a service of several nodes").nodes[node];
        format!("http://{}:{}", node.place.address, node.port)
    }

    /// The folder in which a node runs. The first one has that of a lone service.
    pub(super) fn home_of(&self, node: usize) -> PathBuf {
        match node {
            0 => self.home.clone(),
            _ => self.home.join(format!("node-{}", node + 1)),
        }
    }

    /// Starts a node.
    pub fn begin_node(&mut self, node: usize) -> &mut Child {
        let child = self.command_of(node, &[]).spawn().unwrap();
        self.cluster.as_mut().unwrap().nodes[node].child.insert(child)
    }

    /// Starts a node and waits until it is ready.
    pub fn boot_node(&mut self, node: usize) {
        let (address, http) = (self.address_of(node), self.http.clone());
        let begun = Instant::now();
        let running = self.begin_node(node);
        let mut exited = None;
        let is_ready = || {
            let answer = http.get(format!("{address}/readyz")).send();
            answer.is_ok_and(|answer| answer.status() == 200)
        };
        while !is_ready() {
            exited = exited.or(running.try_wait().unwrap());
            if exited.is_some() || begun.elapsed() > LONGEST {
                panic!("node {node} is not ready: {exited:?}\n{}", self.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process of a node that runs.
    pub fn pid_of(&self, node: usize) -> u32 {
        let node = &self.cluster.as_ref().expect("a service of several nodes").nodes[node];
        node.child.as_ref().expect("a node that runs").id()
    }

    /// Sends a signal to a node that runs.
    pub fn signal_node(&self, node: usize, name: &str) {
        let id = self.pid_of(node).to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// The nodes that ended by themselves.
    pub fn ended_nodes(&mut self) -> Vec<(usize, ExitStatus)> {
        let nodes = &mut self.cluster.as_mut().expect("a service of several nodes").nodes;
        let ended = |node: &mut Node| node.child.as_mut()?.try_wait().unwrap();
        let nodes = nodes.iter_mut().enumerate();
        nodes.filter_map(|(number, node)| Some((number, ended(node)?))).collect()
    }

    /// Stops a node with SIGTERM, and waits for its end.
    pub fn stop_node(&mut self, node: usize) {
        let child = self.cluster.as_mut().unwrap().nodes[node].child.take();
        self.end_all(child.into_iter().collect(), "TERM");
    }

    /// Ends a node with SIGKILL.
    pub fn kill_node(&mut self, node: usize) {
        let child = self.cluster.as_mut().unwrap().nodes[node].child.take();
        self.end_all(child.into_iter().collect(), "KILL");
    }

    /// Starts all nodes, with the keys of the first one, and the balancer.
    pub(super) fn boot_nodes(&mut self) {
        let count = self.cluster.as_ref().unwrap().nodes.len();
        for node in 0..count {
            let home = self.home_of(node);
            if node > 0 {
                std::fs::create_dir_all(home.join("data/run")).unwrap();
                copy_folder(&self.data().join("secrets"), &home.join("data/run/secrets"));
            }
            self.boot_node(node);
        }
        let file = self.home.join("haproxy.cfg");
        std::fs::write(&file, self.balance()).unwrap();
        let mut balancer = Command::new("haproxy");
        let balancer = balancer.args(["-db", "-q", "-f"]).arg(&file).stdin(Stdio::null());
        let log = std::fs::File::create(self.home.join("haproxy.log")).unwrap();
        let balancer = balancer.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.cluster.as_mut().unwrap().balancer = Some(balancer);
        super::eventually("the balancer answers", || self.is_ready());
    }

    /// The settings of the balancer, as docs/SCALING.md has them, with shorter intervals.
    fn balance(&self) -> String {
        let mut text = String::from(
            "defaults\n mode http\n timeout connect 5s\n timeout client 15m\n timeout server 15m\n \
             option forwardfor\n option abortonclose\n option redispatch\n retries 3\n \
             retry-on conn-failure empty-response\n",
        );
        let Cluster { nodes, source, .. } = self.cluster.as_ref().unwrap();
        let calls = nodes.iter().map(|node| node.port).collect();
        let pages = nodes.iter().map(|node| node.dashboard_port).collect();
        let sides: [(_, _, Vec<u16>); 2] =
            [("calls", self.port, calls), ("pages", self.dashboard_port, pages)];
        for (name, port, own) in sides {
            let _ = writeln!(text, "listen {name}\n bind 127.0.0.1:{port}\n balance roundrobin");
            text += " option httpchk GET /readyz\n http-request disable-l7-retry unless METH_GET\n";
            for (number, (own, node)) in own.into_iter().zip(nodes).enumerate() {
                let (checked, address) = (node.port, &node.place.address);
                let _ = writeln!(
                    text,
                    " server n{number} {address}:{own} source {source} check port {checked} inter 200 fall 1 rise 1"
                );
            }
        }
        text
    }

    pub(super) fn end_nodes(&mut self, signal: &str) {
        let Some(cluster) = &mut self.cluster else { return };
        if let Some(mut balancer) = cluster.balancer.take() {
            let _ = balancer.kill();
            balancer.wait().unwrap();
        }
        let children = cluster.nodes.iter_mut().filter_map(|node| node.child.take()).collect();
        self.end_all(children, signal);
    }

    fn end_all(&self, children: Vec<Child>, signal: &str) {
        for child in &children {
            let id = child.id().to_string();
            let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        }
        for mut child in children {
            let ended = child.wait().unwrap();
            assert!(signal == "KILL" || ended.success(), "{}", self.last_words());
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
