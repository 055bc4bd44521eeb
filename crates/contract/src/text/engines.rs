//! Container engines of other machines.

use crate::git_url::SshAddress;
use std::net::Ipv6Addr;

/// The port of ssh, unless an address names another one.
const SSH_PORT: u16 = 22;

texts! {
    /// Where the Docker API of a machine is: a host and a port that speaks TLS, such as `10.0.0.21:2376`, or a machine
    /// that is reached over ssh, such as `ssh://docker@10.0.0.21`.
    EngineAddress,
    schema: {"type": "string", "pattern": "^(ssh://[A-Za-z0-9_][A-Za-z0-9._-]*@(\\[[0-9a-f:.]+\\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?|(\\[[0-9a-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5})$", "maxLength": 300},
    rule: |text| {
        let is_tls = || server(text).is_some_and(|(_, port)| port.is_some());
        if ssh(text).is_some() || is_tls() { Ok(text.to_owned()) } else { Err("must be the host and the port of a Docker engine, such as 10.0.0.21:2376 or ssh://docker@10.0.0.21".into()) }
    };

    /// An address of a private network, such as `10.0.0.21`.
    PrivateAddress,
    schema: {"type": "string", "maxLength": 45},
    rule: |text| match text.parse::<std::net::IpAddr>() {
        Ok(address) if is_private(address) => Ok(address.to_string()),
        _ => Err("must be an address of a private network, such as 10.0.0.21: others would reach the servers of instances at a public one".into()),
    };

    /// Certificates in PEM, at most 64 KiB.
    CertificatePem,
    schema: {"type": "string", "pattern": "^-----BEGIN CERTIFICATE-----", "maxLength": 65536},
    rule: |text| {
        let text = text.trim_start();
        if text.starts_with("-----BEGIN CERTIFICATE-----") && text.len() <= 65_536 { Ok(text.to_owned()) } else { Err("must be a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----".into()) }
    };
}

/// The user and the server of an address of ssh.
fn ssh(text: &str) -> Option<SshAddress<'_>> {
    let (user, at) = text.strip_prefix("ssh://")?.split_once('@')?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let is_user = !user.is_empty() && user.len() <= 32 && user.bytes().all(plain);
    let (host, port) = server(at).filter(|_| is_user && !user.starts_with(['.', '-']))?;
    Some(SshAddress { user, host, port: port.unwrap_or(SSH_PORT) })
}

/// The host, without the brackets of IPv6, and the port if one is named.
fn server(text: &str) -> Option<(&str, Option<u16>)> {
    let label = |l: &str| {
        let plain = l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        plain && !l.is_empty() && l.len() <= 63 && !l.starts_with('-')
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => {
            let (host, port) = text.split_once(':').map_or((text, None), |(h, p)| (h, Some(p)));
            (host.len() <= 253 && host.split('.').all(label)).then_some((host, port))?
        }
    };
    let number = |port: &str| {
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        port.parse::<u16>().ok().filter(|port| digits && *port > 0)
    };
    match port {
        Some(port) => Some((host, Some(number(port)?))),
        None => Some((host, None)),
    }
}

impl EngineAddress {
    /// How the machine is reached over ssh. `None`: its engine speaks TLS.
    pub fn ssh(&self) -> Option<SshAddress<'_>> {
        ssh(self.as_str())
    }
}

/// Whether only machines of one network, or only this one, reach the address (RFC 1918, 6598 and 4193).
fn is_private(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            v4.is_private() || v4.is_loopback() || is_shared
        }
        std::net::IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

impl PrivateAddress {
    /// The address.
    pub fn ip(&self) -> std::net::IpAddr {
        // The rule has parsed the text.
        self.as_str().parse().unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_speaks_tls_or_is_reached_over_ssh() {
        let ssh = |user, host, port| Some(SshAddress { user, host, port });
        for (text, told) in [
            ("10.0.0.21:2376", None),
            ("[::1]:2376", None),
            ("docker.example.com:2376", None),
            ("ssh://docker@10.0.0.21", ssh("docker", "10.0.0.21", 22)),
            ("ssh://a-b@host:2222", ssh("a-b", "host", 2222)),
            ("ssh://root@[::1]", ssh("root", "::1", 22)),
            ("ssh://root@[::1]:23", ssh("root", "::1", 23)),
        ] {
            let address: EngineAddress = text.parse().unwrap();
            assert_eq!(address.ssh(), told, "{text}");
        }
        for wrong in [
            "",
            "10.0.0.21",
            "10.0.0.21:0",
            "10.0.0.21:+1",
            "[::1]",
            "[::1]2376",
            "-o:1",
            "unix:///var/run/docker.sock",
            "ssh://10.0.0.21",
            "ssh://-oProxyCommand=x@10.0.0.21",
            "ssh://docker@-oProxyCommand=x",
            "ssh://docker@host:",
            "ssh://docker@host/path",
            "ssh://a b@host",
            "ssh://docker@host\n",
        ] {
            assert!(wrong.parse::<EngineAddress>().is_err(), "{wrong:?}");
        }
    }
}
