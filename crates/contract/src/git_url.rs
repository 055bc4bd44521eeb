//! The addresses of git repositories.

use crate::text::GitUrl;

/// The user of an ssh address that names none. All common hosts have this one.
const USER: &str = "git";
/// The port of ssh (RFC 4253).
const PORT: u16 = 22;
const LONGEST: usize = 500;
const PROBLEM: &str = "must be the address of a git repository such as \
                       https://git.example.com/team/app.git, without user and password, or \
                       ssh://git@git.example.com/team/app.git";

/// The server of an ssh address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SshAddress<'a> {
    /// The name to sign in with.
    pub user: &'a str,
    /// The name of the host in lower case, or its IPv4 address.
    pub host: &'a str,
    /// The port of ssh, 22 unless the address names another one.
    pub port: u16,
}

impl GitUrl {
    /// The host, without user and port.
    pub fn host(&self) -> &str {
        Parts::of_url(self.as_str()).map_or("", |parts| parts.host)
    }

    /// Whether the address names the port 0, at which no server listens. Stores of earlier versions may hold
    /// such an address, so the type takes it.
    pub fn names_port_zero(&self) -> bool {
        let port = Parts::of_url(self.as_str()).and_then(|parts| parts.port?.parse::<u16>().ok());
        port == Some(0)
    }

    /// The host in lower case, with its port if that is not the usual one of the scheme.
    pub fn authority(&self) -> String {
        let Some(Parts { scheme, host, port, .. }) = Parts::of_url(self.as_str()) else {
            return String::new();
        };
        let host = host.to_ascii_lowercase();
        match (scheme, port.and_then(|port| port.parse::<u16>().ok())) {
            (_, None) | ("https", Some(443)) | ("http", Some(80)) | ("ssh", Some(PORT)) => host,
            (_, Some(port)) => format!("{host}:{port}"),
        }
    }

    /// The server, if this is an ssh address.
    pub fn ssh(&self) -> Option<SshAddress<'_>> {
        let Parts { scheme, user, host, port, .. } = Parts::of_url(self.as_str())?;
        let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
        (scheme == "ssh").then_some(SshAddress { user: user.unwrap_or(USER), host, port })
    }
}

/// The rule of [`GitUrl`]. An ssh address gets one spelling: as a URL, with a user, and with a port
/// only if it is not 22. No part of it can be an option of a program, a pattern of its configuration
/// or a word of a shell.
pub(crate) fn checked(text: &str) -> Result<String, String> {
    let parts = Parts::of_url(text).or_else(|| Parts::of_short_form(text));
    let spelled = parts.filter(Parts::have_plain_characters).and_then(|parts| match parts.scheme {
        "https" | "http" if parts.user.is_none() => {
            parts.port.is_none_or(|port| port.parse::<u16>().is_ok()).then(|| text.to_owned())
        }
        "ssh" => parts.spelled_as_ssh(),
        _ => None,
    });
    spelled.filter(|url| url.len() <= LONGEST).ok_or_else(|| PROBLEM.into())
}

/// The parts of an address, unchecked.
struct Parts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    port: Option<&'a str>,
    /// Without its first slash.
    path: &'a str,
}

impl<'a> Parts<'a> {
    /// The parts of `scheme://[user@]host[:port]/path`.
    fn of_url(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (server, path) = rest.split_once('/')?;
        let (user, host) = match server.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, server),
        };
        let (host, port) = match host.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host, None),
        };
        Some(Parts { scheme, user, host, port, path })
    }

    /// The parts of `user@host:path`, which hosts show beside their URLs. `host:2222/app.git` is not
    /// one: git reads the number as a folder, and people mean a port.
    fn of_short_form(text: &'a str) -> Option<Self> {
        let (user, rest) = text.split_once('@')?;
        let (host, path) = rest.split_once(':')?;
        let first = path.split('/').next().unwrap_or_default();
        let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        let path = path.strip_prefix('/').unwrap_or(path);
        (!is_number).then_some(Parts { scheme: "ssh", user: Some(user), host, port: None, path })
    }

    fn have_plain_characters(&self) -> bool {
        let host = |b: u8| b.is_ascii_alphanumeric() || b".-".contains(&b);
        let path = |b: u8| b.is_ascii_alphanumeric() || b"._~/-".contains(&b);
        !self.host.is_empty()
            && !self.host.starts_with('-')
            && self.host.bytes().all(host)
            && !self.path.is_empty()
            && self.path.bytes().all(path)
    }

    fn spelled_as_ssh(&self) -> Option<String> {
        let user = self.user.unwrap_or(USER);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if user.is_empty() || user.starts_with(['-', '.']) || !user.bytes().all(plain) {
            return None;
        }
        let digits = self.port.is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()));
        let port = self.port.map_or(Some(PORT), |port| port.parse::<u16>().ok())?;
        let host = self.host.to_ascii_lowercase();
        let path = self.path;
        match port {
            _ if !digits => None,
            0 => None,
            PORT => Some(format!("ssh://{user}@{host}/{path}")),
            port => Some(format!("ssh://{user}@{host}:{port}/{path}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repositories::RepositoryHost;

    fn read(text: &str) -> Option<String> {
        text.parse::<GitUrl>().ok().map(String::from)
    }

    #[test]
    fn an_authority_names_only_an_unusual_port() {
        for (url, authority) in [
            ("https://Git.Example.com/a", "git.example.com"),
            ("https://git.example.com:443/a", "git.example.com"),
            ("https://git.example.com:8443/a", "git.example.com:8443"),
            ("http://git.example.com:443/a", "git.example.com:443"),
            ("ssh://git@git.example.com:2222/a", "git.example.com:2222"),
        ] {
            assert_eq!(url.parse::<GitUrl>().unwrap().authority(), authority, "{url}");
        }
    }

    #[test]
    fn an_ssh_address_has_one_spelling() {
        let plain = "ssh://git@git.example.com/team/app.git";
        for text in [
            plain,
            "ssh://git.example.com/team/app.git",
            "ssh://git@Git.Example.com:22/team/app.git",
            "git@git.example.com:team/app.git",
            "git@git.example.com:/team/app.git",
        ] {
            assert_eq!(read(text).as_deref(), Some(plain), "{text}");
        }
        for text in ["ssh://ada_1@10.0.0.1:2222/~ada/app", "https://git.example.com:8443/a.git"] {
            assert_eq!(read(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn an_address_names_its_server() {
        let url: GitUrl = "ssh://ada@Git.example.com:2222/app.git".parse().unwrap();
        let server = SshAddress { user: "ada", host: "git.example.com", port: 2222 };
        assert_eq!((url.host(), url.ssh()), ("git.example.com", Some(server)));
        let url: GitUrl = "https://git.example.com:8443/app.git".parse().unwrap();
        assert_eq!((url.host(), url.ssh()), ("git.example.com", None));
        assert_eq!(RepositoryHost::of(&url), RepositoryHost::Git);
        for github in ["git@github.com:acme/app.git", "https://github.com:443/acme/app.git"] {
            assert_eq!(RepositoryHost::of(&github.parse().unwrap()), RepositoryHost::Github);
        }
    }

    #[test]
    fn no_address_carries_an_option_or_a_command() {
        for text in [
            "",
            "ssh://",
            "ssh:///app.git",
            "ssh://host",
            "ssh://host/",
            "ssh://-oProxyCommand=x/app.git",
            "ssh://-host/app.git",
            "ssh://git@-host/app.git",
            "ssh://-oProxyCommand@host/app.git",
            "ssh://-l@host/app.git",
            "ssh://@host/app.git",
            "ssh://.@host/app.git",
            "ssh://a b@host/app.git",
            "ssh://git:secret@host/app.git",
            "ssh://a@b@host/app.git",
            "ssh://git@ho st/app.git",
            "ssh://git@%h/app.git",
            "ssh://git@host%h/app.git",
            "ssh://git@*/app.git",
            "ssh://git@!host/app.git",
            "ssh://git@host/app.git\nProxyCommand x",
            "ssh://git@host\n/app.git",
            "ssh://git@host/$(x)",
            "ssh://git@host/'x'",
            "ssh://git@host/a;b",
            "ssh://git@host:/app.git",
            "ssh://git@host:0/app.git",
            "ssh://git@host:+22/app.git",
            "ssh://git@host:65536/app.git",
            "ssh://git@host:22:22/app.git",
            "ssh://git@[::1]/app.git",
            "SSH://git@host/app.git",
            "git+ssh://git@host/app.git",
            "ext::sh -c x",
            "file:///etc",
            "-oProxyCommand=x@host:app.git",
            "git@-host:app.git",
            "git@host:2222/app.git",
            "host:app.git",
            "git@host:",
            "git@host:/",
            "https://ada@host/app.git",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(read(&format!("ssh://host/{}", "a".repeat(500))), None);
    }
}
