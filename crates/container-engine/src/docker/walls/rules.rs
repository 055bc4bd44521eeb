//! The rules as a table of nftables (`man nft`). A table of our own leaves those of the machine and of the
//! engine as they are: what it accepts, they still judge.

use crate::WayOut;
use std::{fmt::Write, net::IpAddr};

/// An address of the documentation (RFC 5737), at which the probe knocks.
pub(super) const ELSEWHERE: &str = "192.0.2.9";

/// What the rules are made from.
pub(super) struct Facts<'a> {
    /// The name of the table.
    pub table: &'a str,
    /// How the names of the bridges begin that the rules are about.
    pub prefix: &'a str,
    /// Other bridges that they are about.
    pub others: &'a [String],
    /// Addresses that nobody may reach, as networks.
    pub closed: &'a [(IpAddr, u8)],
    /// The name servers of the containers.
    pub resolvers: &'a [IpAddr],
    pub way_out: &'a WayOut,
}

/// The rules, in one line. They replace those of before in one step.
///
/// A container reaches its own network, name servers, what `way_out` names, and of the rest only
/// addresses that are not closed, and no port for mail between servers. Of this machine it reaches what
/// `way_out` names, and nothing else. What others begin, it may answer.
pub(super) fn rules(facts: &Facts<'_>) -> String {
    let Facts { table, prefix, others, closed, resolvers, way_out } = facts;
    let of = |is_v4: bool| closed.iter().filter(move |(address, _)| address.is_ipv4() == is_v4);
    let network = |(address, bits): &(IpAddr, u8)| format!("{address}/{bits}");
    let servers = |is_v4: bool| resolvers.iter().filter(move |a| a.is_ipv4() == is_v4);
    let peers = |is_v4: bool| {
        let peers = way_out.peers.iter().filter(move |peer| peer.is_ipv4() == is_v4);
        peers.map(|peer| format!("{} . {}", peer.ip(), peer.port()))
    };
    let mut text = format!("table inet {table}; delete table inet {table}; table inet {table} {{ ");
    let mut set = |name: &str, kind: &str, elements: Vec<String>| {
        let _ = write!(text, "set {name} {{ type {kind}; ");
        if !elements.is_empty() {
            let _ = write!(text, "elements = {{ {} }}; ", elements.join(", "));
        }
        text.push_str("}; ");
    };
    set("closed4", "ipv4_addr; flags interval", of(true).map(network).collect());
    set("closed6", "ipv6_addr; flags interval", of(false).map(network).collect());
    set("resolvers4", "ipv4_addr", servers(true).map(ToString::to_string).collect());
    set("resolvers6", "ipv6_addr", servers(false).map(ToString::to_string).collect());
    set("peers4", "ipv4_addr . inet_service", peers(true).collect());
    set("peers6", "ipv6_addr . inet_service", peers(false).collect());
    set("own", "inet_service", way_out.ports.iter().map(ToString::to_string).collect());
    let mut chain = |name: &str, rules: &[&str]| {
        let _ = write!(text, "chain {name} {{ {}; }}; ", rules.join("; "));
    };
    chain(
        "named",
        &[
            "meta l4proto { tcp, udp } th dport 53 ip daddr @resolvers4 accept",
            "meta l4proto { tcp, udp } th dport 53 ip6 daddr @resolvers6 accept",
            "ip daddr . tcp dport @peers4 accept",
            "ip6 daddr . tcp dport @peers6 accept",
        ],
    );
    chain(
        "leaving",
        &[
            "ct state established,related accept",
            // The same network: the route to the address is the bridge from which the packet comes.
            "fib daddr . iif oif exists accept",
            "jump named",
            // This machine's ports, where a container serves them.
            "ct status dnat ct original proto-dst @own accept",
            "ct status dnat ct original ip daddr . ct original proto-dst @peers4 accept",
            &format!("ip daddr {ELSEWHERE} tcp dport 9 reject with icmp type prot-unreachable"),
            "tcp dport 25 reject with tcp reset",
            "ip daddr @closed4 reject with icmpx type admin-prohibited",
            "ip6 daddr @closed6 reject with icmpx type admin-prohibited",
        ],
    );
    chain(
        "arriving",
        &[
            "ct state established,related accept",
            // How neighbours find each other over IPv6.
            "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept",
            "jump named",
            "tcp dport @own accept",
            "tcp dport 9 reject with icmp type prot-unreachable",
            "reject with icmpx type admin-prohibited",
        ],
    );
    for (hook, next) in [("forward", "leaving"), ("input", "arriving")] {
        let base = format!("type filter hook {hook} priority -10; policy accept");
        let bridges = [format!("{prefix}*")].into_iter().chain(others.iter().cloned());
        let jumps = bridges.map(|bridge| format!("iifname \"{bridge}\" goto {next}"));
        let rules: Vec<String> = [base].into_iter().chain(jumps).collect();
        chain(hook, &rules.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text.push('}');
    text
}
