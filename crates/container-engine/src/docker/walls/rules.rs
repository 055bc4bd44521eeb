//! The rules as a table of nftables (`man nft`). A table of our own leaves those of the machine and of the
//! engine as they are: what it accepts, they still judge.

use std::{
    fmt::Write,
    net::{IpAddr, SocketAddr},
};

/// An address at which the probe knocks. It has to be in a closed network, and routed.
pub(super) const ELSEWHERE: &str = "10.255.255.9";

/// What the rules are made from.
pub(super) struct Facts<'a> {
    /// The name of the table.
    pub table: &'a str,
    /// The bridges that the rules are about. A `*` at the end stands for any end.
    pub bridges: &'a [String],
    /// Addresses that nobody may reach, as networks.
    pub closed: &'a [(IpAddr, u8)],
    /// The name servers of the containers.
    pub resolvers: &'a [IpAddr],
    /// What is open all the same, over TCP.
    pub peers: &'a [SocketAddr],
    /// The same from one bridge.
    pub of_bridges: &'a [(String, SocketAddr)],
}

/// The rules, in one line. They replace those of before in one step.
///
/// A container reaches its own network, name servers, peers, and of the rest only addresses that are not
/// closed, and no port for mail between servers. Of this machine it reaches only what is a name server or a
/// peer. What others begin, it may answer; what it began itself ends when the rules forbid it.
pub(super) fn rules(facts: &Facts<'_>) -> String {
    let Facts { table, bridges, closed, resolvers, peers, of_bridges } = facts;
    let closed = |is_v4: bool| {
        let closed = closed.iter().filter(move |(address, _)| address.is_ipv4() == is_v4);
        closed.map(|(address, bits)| format!("{address}/{bits}")).collect()
    };
    let resolvers = |is_v4: bool| {
        let resolvers = resolvers.iter().filter(move |address| address.is_ipv4() == is_v4);
        resolvers.map(ToString::to_string).collect()
    };
    let peers = |is_v4: bool| {
        let peers = peers.iter().filter(move |peer| peer.is_ipv4() == is_v4);
        peers.map(|peer| format!("{} . {}", peer.ip(), peer.port())).collect()
    };
    let of_bridges = |is_v4: bool| {
        let peers = of_bridges.iter().filter(move |(_, peer)| peer.is_ipv4() == is_v4);
        let element = |(bridge, peer): &(String, SocketAddr)| {
            format!("\"{bridge}\" . {} . {}", peer.ip(), peer.port())
        };
        peers.map(element).collect()
    };
    let mut text = format!("table inet {table}; delete table inet {table}; table inet {table} {{ ");
    let mut set = |name: &str, kind: &str, elements: Vec<String>| {
        let _ = write!(text, "set {name} {{ type {kind}; ");
        if !elements.is_empty() {
            let _ = write!(text, "elements = {{ {} }}; ", elements.join(", "));
        }
        text.push_str("}; ");
    };
    set("closed4", "ipv4_addr; flags interval", closed(true));
    set("closed6", "ipv6_addr; flags interval", closed(false));
    set("resolvers4", "ipv4_addr", resolvers(true));
    set("resolvers6", "ipv6_addr", resolvers(false));
    set("peers4", "ipv4_addr . inet_service", peers(true));
    set("peers6", "ipv6_addr . inet_service", peers(false));
    set("own4", "ifname . ipv4_addr . inet_service", of_bridges(true));
    set("own6", "ifname . ipv6_addr . inet_service", of_bridges(false));
    let mut chain = |name: &str, rules: &[String]| {
        let _ = write!(text, "chain {name} {{ {}; }}; ", rules.join("; "));
    };
    // Only what answers: a connection of before the rules, or to a peer of before, does not go on.
    let answers = "ct direction reply ct state established,related accept".to_owned();
    chain(
        "named",
        &[
            "meta l4proto { tcp, udp } th dport 53 ip daddr @resolvers4 accept",
            "meta l4proto { tcp, udp } th dport 53 ip6 daddr @resolvers6 accept",
            "ip daddr . tcp dport @peers4 accept",
            "ip6 daddr . tcp dport @peers6 accept",
            "iifname . ip daddr . tcp dport @own4 accept",
            "iifname . ip6 daddr . tcp dport @own6 accept",
            // Where this machine leads an address of its own to a container, or to another port.
            "ct status dnat ct original proto-dst 53 ct original ip daddr @resolvers4 accept",
            "meta l4proto tcp ct status dnat ct original ip daddr . ct original proto-dst @peers4 accept",
            "meta l4proto tcp ct status dnat iifname . ct original ip daddr . ct original proto-dst @own4 accept",
        ]
        .map(str::to_owned),
    );
    let other_bridges = bridges
        .iter()
        .map(|bridge| format!("oifname \"{bridge}\" reject with icmpx type admin-prohibited"));
    let leaving = [
        answers.clone(),
        // The same network: the route to the address is the bridge from which the packet comes.
        "fib daddr . iif oif exists accept".to_owned(),
        "jump named".to_owned(),
        format!("ip daddr {ELSEWHERE} tcp dport 9 reject with icmp type prot-unreachable"),
        "tcp dport 25 reject with tcp reset".to_owned(),
        "ip daddr @closed4 reject with icmpx type admin-prohibited".to_owned(),
        "ip6 daddr @closed6 reject with icmpx type admin-prohibited".to_owned(),
    ];
    chain("leaving", &leaving.into_iter().chain(other_bridges).collect::<Vec<_>>());
    chain(
        "arriving",
        &[
            &answers,
            // How neighbours find each other over IPv6.
            "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept",
            "jump named",
            "tcp dport 9 reject with icmp type prot-unreachable",
            "reject with icmpx type admin-prohibited",
        ]
        .map(str::to_owned),
    );
    for (hook, next) in [("forward", "leaving"), ("input", "arriving")] {
        let base = format!("type filter hook {hook} priority -10; policy accept");
        let jumps = bridges.iter().map(|bridge| format!("iifname \"{bridge}\" goto {next}"));
        chain(hook, &[base].into_iter().chain(jumps).collect::<Vec<_>>());
    }
    text.push('}');
    text
}
