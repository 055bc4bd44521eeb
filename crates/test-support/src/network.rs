//! A network of several places on this machine, each in a namespace of its own, which can be cut, be slow and lose
//! packets. It needs root, `ip`, `tc`, `nft` and `nsenter`.

use super::{claims::claim, requires};
use std::{
    fmt::Write as _,
    fs::File,
    io::Write as _,
    net::Ipv4Addr,
    path::Path,
    process::{Command, Stdio},
};

/// Addresses that no network of the outside has: those for benchmarks of RFC 2544.
const ADDRESSES: &str = "198.18";
/// How `tc` makes a link slow. What does not go out within a second is lost. A rate follows.
const SHAPE: [&str; 6] = ["tbf", "burst", "16kb", "latency", "1s", "rate"];
/// How many networks there may be at a time.
const NETWORKS: u16 = 200;

/// A network, which ends with this value. The machine itself is one of its places.
pub struct Network {
    number: u16,
    places: Vec<String>,
    /// Locked until the network has ended: what an earlier program left under this number can go.
    _claim: File,
}

/// Where a program runs: its address, and the words that bring it there.
#[derive(Debug, Clone)]
pub struct Place {
    pub address: String,
    pub enter: Vec<String>,
}

/// What a place does not reach any more.
#[derive(Debug, Clone)]
pub enum Target {
    All,
    Address(String),
    Port(String, u16),
}

impl Network {
    /// A network of these places. `None`: it cannot be made here, and this test is left out.
    pub fn of(test: &str, places: &[&str]) -> Option<Network> {
        if !requires::programs(test, &["nft", "nsenter", "tc"]) || !requires::root(test) {
            return None;
        }
        let (number, claim) =
            claim("networks", 0..NETWORKS).expect("a network that no test program has");
        let places = places.iter().map(|place| (*place).to_owned()).collect();
        let network = Network { number, places, _claim: claim };
        network.remove();
        network.make();
        // Some kernels have nothing that makes a link slow.
        let own = network.namespace("hub");
        let mut try_it = Command::new("tc");
        try_it.args(["-n", &own, "qdisc", "add", "dev", "lo", "root"]).args(SHAPE).arg("1000kbit");
        if !try_it.output().is_ok_and(|tried| tried.status.success()) {
            requires::left_out(test, "this kernel shapes no traffic (tbf)");
            return None;
        }
        Some(network)
    }

    fn make(&self) {
        let hub = self.namespace("hub");
        let machine = self.machine().address;
        let mut text = format!(
            "netns add {hub}\nlink add svct{n} type veth peer name machine netns {hub}\n\
             addr add {machine}/24 dev svct{n}\nlink set svct{n} up\n",
            n = self.number
        );
        for place in &self.places {
            let own = self.namespace(place);
            let _ = writeln!(
                text,
                "netns add {own}\nlink add {own} type veth peer name eth0 netns {own}\nlink set {own} netns {hub}"
            );
        }
        ip(&[], &text);
        let mut text = String::from("link add bridge type bridge\nlink set bridge up\n");
        let own = self.places.iter().map(|place| self.namespace(place));
        for link in own.chain(["machine".into()]) {
            let _ = writeln!(text, "link set {link} master bridge up");
        }
        ip(&["-n", &hub], &text);
        for place in &self.places {
            let address = self.place(place).address;
            ip(
                &["-n", &self.namespace(place)],
                &format!(
                    "link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n\
                     route add default via {machine}\n"
                ),
            );
        }
    }

    /// A place in it.
    pub fn place(&self, name: &str) -> Place {
        let position = self.places.iter().position(|place| place == name).unwrap();
        let enter = ["nsenter".into(), format!("--net=/run/netns/{}", self.namespace(name))];
        Place { address: self.address(position + 2), enter: enter.into() }
    }

    /// This machine, as the others see it.
    pub fn machine(&self) -> Place {
        Place { address: self.address(1), enter: Vec::new() }
    }

    fn address(&self, number: usize) -> String {
        format!("{ADDRESSES}.{}.{number}", self.number)
    }

    fn namespace(&self, place: &str) -> String {
        format!("svct{}-{place}", self.number)
    }

    /// What is sent between a place and these vanishes from now on, in both directions.
    pub fn cut(&self, place: &str, from: &[Target]) {
        let (sent, received) = from
            .iter()
            .map(|target| match target {
                Target::All => (String::new(), String::new()),
                Target::Address(address) => {
                    (format!("ip daddr {address}"), format!("ip saddr {address}"))
                }
                Target::Port(address, port) => (
                    format!("ip daddr {address} tcp dport {port}"),
                    format!("ip saddr {address} tcp sport {port}"),
                ),
            })
            .unzip::<_, _, Vec<_>, Vec<_>>();
        self.drop_some(place, &sent, &received);
    }

    /// A place loses so many of a hundred packets from now on, in each direction.
    pub fn lose(&self, place: &str, percent: u8) {
        let some = [format!("numgen random mod 100 < {percent}")];
        self.drop_some(place, &some, &some);
    }

    /// A place sends and gets no more than so many kilobits a second from now on. What waits comes late.
    pub fn slow_down(&self, place: &str, rate: u32) {
        for [namespace, device] in self.both_ends(place) {
            let mut tc = Command::new("tc");
            tc.args(["-n", &namespace, "qdisc", "replace", "dev", &device, "root"]).args(SHAPE);
            given(tc.arg(format!("{rate}kbit")), "");
        }
    }

    /// The namespace and the device of both ends of the link of a place. Each sends to the other.
    fn both_ends(&self, place: &str) -> [[String; 2]; 2] {
        let own = self.namespace(place);
        [[own.clone(), "eth0".into()], [self.namespace("hub"), own]]
    }

    /// Drops the packets at a place that are like one of these.
    fn drop_some(&self, place: &str, sent: &[String], received: &[String]) {
        let rules = |which: &str, like: &[String]| -> String {
            like.iter().map(|like| format!("  {which} eth0 {like} drop\n")).collect()
        };
        let text = format!(
            "table inet trial {{\n chain sent {{\n  type filter hook output priority 0\n{} }}\n \
             chain received {{\n  type filter hook input priority 0\n{} }}\n}}\n",
            rules("oifname", sent),
            rules("iifname", received)
        );
        given(self.place(place).command("nft").args(["-f", "-"]), &text);
    }

    /// A place is reached again, at full speed, and loses nothing.
    pub fn heal(&self, place: &str) {
        given(self.place(place).command("nft").args(["-f", "-"]), "flush ruleset\n");
        for [namespace, device] in self.both_ends(place) {
            // Fails where nothing was slow.
            let mut tc = Command::new("tc");
            let _ = tc.args(["-n", &namespace, "qdisc", "delete", "dev", &device, "root"]).output();
        }
    }

    fn remove(&self) {
        let namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let prefix = format!("svct{}-", self.number);
        let names = namespaces.filter_map(|entry| entry.file_name().into_string().ok());
        for name in names.filter(|name| name.starts_with(&prefix)) {
            let _ = Command::new("ip").args(["netns", "delete", &name]).output();
        }
        let own = format!("svct{}", self.number);
        if Path::new("/sys/class/net").join(&own).exists() {
            let _ = Command::new("ip").args(["link", "delete", &own]).output();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Place {
    /// This machine by itself.
    pub fn here() -> Place {
        Place { address: Ipv4Addr::LOCALHOST.to_string(), enter: Vec::new() }
    }

    /// A program that runs there.
    pub fn command(&self, program: &str) -> Command {
        let mut words = self.enter.iter().map(String::as_str).chain([program]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        command
    }
}

/// Runs these commands of `ip`, one for each line.
fn ip(options: &[&str], commands: &str) {
    given(Command::new("ip").args(options).args(["-batch", "-"]), commands);
}

/// Runs a program with this input.
fn given(command: &mut Command, input: &str) {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{input}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
