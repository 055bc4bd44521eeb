//! Which addresses are on the public internet.

use std::net::IpAddr;

/// Whether an address is on the public internet: not loopback, private, link-local, shared,
/// documentation, benchmark, multicast or reserved (RFC 6890).
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [first, second, third, _] = a.octets();
            let special = matches!(
                (first, second, third),
                (0 | 10 | 127 | 224.., _, _)
                    | (100, 64..=127, _)
                    | (169, 254, _)
                    | (172, 16..=31, _)
                    | (192, 168, _)
                    | (192, 0, 0 | 2)
                    | (198, 18..=19, _)
                    | (198, 51, 100)
                    | (203, 0, 113)
            );
            !special
        }
        // 2000::/3 is the allocated space. It contains documentation addresses and tunnels to IPv4.
        IpAddr::V6(a) => {
            let [first, second, ..] = a.segments();
            (0x2000..=0x3fff).contains(&first)
                && !matches!((first, second), (0x2001, 0x0..=0x1ff | 0xdb8) | (0x2002, _))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "140.82.121.3", "172.32.0.1", "2606:50c0:8000::153"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
