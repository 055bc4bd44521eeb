//! Which addresses others may make the service connect to: those on the public internet, and the hosts
//! that an operator allows.

use crate::look_up;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Hosts and ports that may lie on the internal network.
#[derive(Debug, Clone, Default)]
pub struct PrivateHosts(Vec<(String, u16)>);

impl From<Vec<(String, u16)>> for PrivateHosts {
    /// Names in lower case; an IPv6 address in brackets.
    fn from(hosts: Vec<(String, u16)>) -> Self {
        PrivateHosts(hosts)
    }
}

impl PrivateHosts {
    /// Whether the operator allows this host at this port.
    pub fn contains(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|(allowed, at)| (allowed.as_str(), *at) == (host, port))
    }
}

/// Why a host has no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// Nobody knows the host.
    #[error("the host {0} is not known")]
    Unknown(String),
    /// The host is on the internal network.
    #[error("{host} is not on the public internet; an operator can allow it with {setting}")]
    Internal {
        /// The name, or the address.
        host: String,
        /// The setting that allows hosts of the internal network.
        setting: &'static str,
    },
}

impl PrivateHosts {
    /// The ports of this machine's 127.0.0.1 among them.
    pub fn ports_of_loopback(&self) -> Vec<u16> {
        self.0.iter().filter(|(host, _)| host == "127.0.0.1").map(|(_, port)| *port).collect()
    }

    /// The addresses of a host that others may make the service connect to. The addresses of this machine
    /// do not count as public: what listens there may be meant for this machine only. `setting` is the
    /// name of the setting that holds these hosts.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn addresses(
        &self,
        host: &str,
        port: u16,
        setting: &'static str,
    ) -> Result<Vec<SocketAddr>, NoAddress> {
        let found = look_up(host).await.unwrap_or_default();
        let is_private = self.contains(host, port);
        let may = |address| is_private || is_public(address) && !is_of_this_machine(address);
        let found = allowed(host, found, setting, may)?;
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// The addresses of a host that may be connected to, of those that were found.
pub(crate) fn allowed(
    host: &str,
    mut found: Vec<IpAddr>,
    setting: &'static str,
    may: impl Fn(IpAddr) -> bool,
) -> Result<Vec<IpAddr>, NoAddress> {
    if found.is_empty() {
        return Err(NoAddress::Unknown(host.to_owned()));
    }
    found.retain(|address| may(*address));
    if found.is_empty() {
        return Err(NoAddress::Internal { host: host.to_owned(), setting });
    }
    Ok(found)
}

/// Only an address of the machine can be listened on.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The networks that are not on the public internet, each an address and the bits that count: loopback,
/// private, link-local, shared, documentation, benchmark, multicast and reserved (RFC 6890, RFC 9637), and
/// what a cloud serves to its machines.
pub const SPECIAL: [(IpAddr, u8); 21] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    // Azure's services for its machines are at a public address.
    v4([168, 63, 129, 16], 32),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 3),
    // 2000::/3 is the allocated space. It contains documentation addresses and tunnels to IPv4.
    v6(0, 0, 3),
    v6(0x4000, 0, 2),
    v6(0x8000, 0, 1),
    v6(0x2001, 0, 23),
    v6(0x2001, 0xdb8, 32),
    v6(0x2002, 0, 16),
    v6(0x3fff, 0, 20),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> (IpAddr, u8) {
    (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

const fn v6(first: u16, second: u16, bits: u8) -> (IpAddr, u8) {
    (IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)), bits)
}

/// Whether an address is on the public internet. An IPv4 address inside of an IPv6 one is judged as what it
/// is, or refused.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !SPECIAL.iter().any(|(network, bits)| contains(*network, *bits, address))
}

fn contains(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let differ = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= u32::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_internal_network_are_known() {
        let inside = [
            "127.0.0.1",
            "10.1.2.3",
            "172.17.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "2001:0:7f00:1::",
            "3fff::1",
            "fd00:ec2::254",
            "192.0.2.1",
            "198.18.0.1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in
            ["1.1.1.1", "140.82.121.3", "172.32.0.1", "2606:50c0:8000::153", "::ffff:1.1.1.1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
