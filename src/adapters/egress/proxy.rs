//! The proxy of one build: tunnels (`CONNECT host:port`), and requests with a whole address
//! (`GET http://host/path`), as RFC 9110 and RFC 9112 describe them.
//!
//! Each connection of the build leads to one address. What comes after the head passes as it is.

use super::SETTING;
use remote::{NoAddress, PrivateHosts};
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};
use url::{Position, Url};

/// Connections of a build at a time. The next ones wait.
const CONNECTIONS: usize = 64;
/// Bytes of the head of a request.
const LONGEST_HEAD: usize = 16 << 10;
/// How long a build may take to write the head, and how long a host may take to answer.
const WITHIN: Duration = Duration::from_secs(30);
/// Mail is what nobody builds with, and what makes the address of a machine unwelcome elsewhere.
const MAIL: u16 = 25;
/// Refusals that are remembered.
const MOST_REFUSALS: usize = 100;

pub(super) struct Proxy {
    pub private_hosts: PrivateHosts,
    refused: Mutex<Refusals>,
}

#[derive(Default)]
struct Refusals {
    known: BTreeSet<String>,
    untold: Vec<String>,
}

/// The first line of a request, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    /// The first line for the host itself. `None`: the request is for a tunnel.
    line: Option<String>,
}

impl Proxy {
    pub fn new(private_hosts: PrivateHosts) -> Proxy {
        Proxy { private_hosts, refused: Mutex::default() }
    }

    /// What was refused since the last call.
    pub fn take_refused(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().untold)
    }

    /// Serves connections until it is dropped, and they with it.
    pub async fn serve(self: Arc<Self>, listener: UnixListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= CONNECTIONS {
                connections.join_next().await;
            }
            match listener.accept().await {
                Ok((connection, _)) => {
                    let proxy = self.clone();
                    // What fails here, the build sees.
                    connections.spawn(async move { proxy.carry(connection).await });
                }
                Err(e) => {
                    tracing::warn!(error = %e, "a proxy of a build accepts nothing for a moment");
                    breathe().await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }

    async fn carry(&self, mut build: UnixStream) -> io::Result<()> {
        let Ok(head) = timeout(WITHIN, read_head(&mut build)).await else { return Ok(()) };
        let (head, rest) = head?;
        let opened = match Target::of(&head) {
            Ok(target) => self.connect(&target).await.map(|host| (target, host)),
            Err(why) => Err((400, why)),
        };
        let (target, mut host) = match opened {
            Ok(opened) => opened,
            Err((status, why)) => {
                // Most programs show the first line only.
                let answer = format!(
                    "HTTP/1.1 {status} {why}\r\nContent-Type: text/plain; charset=utf-8\r\n\
                     Connection: close\r\n\r\n{why}\n"
                );
                return build.write_all(answer.as_bytes()).await;
            }
        };
        match &target.line {
            None => build.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?,
            Some(line) => host.write_all(onward(line, &head).as_bytes()).await?,
        }
        host.write_all(&rest).await?;
        copy_bidirectional(&mut build, &mut host).await?;
        Ok(())
    }

    /// Connects to an address of the target that the build may reach.
    async fn connect(&self, target: &Target) -> Result<TcpStream, (u16, String)> {
        let Target { host, port, .. } = target;
        let refuse = |why: String| {
            self.remember(format!("refused: {host}:{port}: {why}"));
            (403, why)
        };
        if *port == MAIL {
            return Err(refuse(format!("port {MAIL} is closed for builds")));
        }
        let opened = timeout(WITHIN, async {
            let found = self.private_hosts.addresses(host, *port, SETTING).await;
            let addresses = found.map_err(|e| match e {
                NoAddress::Unknown(_) => (502, e.to_string()),
                NoAddress::Internal { .. } => refuse(e.to_string()),
            })?;
            let connection = TcpStream::connect(addresses.as_slice()).await;
            connection.map_err(|e| (502, format!("{host}:{port} cannot be reached: {e}")))
        });
        let late = || Err((504, format!("{host}:{port} does not answer")));
        opened.await.unwrap_or_else(|_| late())
    }

    fn remember(&self, refusal: String) {
        let mut refused = self.lock();
        if refused.known.len() < MOST_REFUSALS && refused.known.insert(refusal.clone()) {
            refused.untold.push(refusal);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Refusals> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(clippy::disallowed_methods, reason = "the kernel is waited for")]
async fn breathe() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// The head of a request, and the bytes after it that came along.
async fn read_head(build: &mut UnixStream) -> io::Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            let head = String::from_utf8(read).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        if read.len() > LONGEST_HEAD {
            return Err(io::Error::other("the head of a request is too long"));
        }
        if build.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl Target {
    fn of(head: &str) -> Result<Target, String> {
        let line = head.lines().next().unwrap_or_default();
        let [method, address, version] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err("this is no request".to_owned());
        };
        let is_tunnel = method == "CONNECT";
        // With a scheme, the same parser reads both, and writes odd addresses the usual way.
        let text = if is_tunnel { format!("http://{address}/") } else { address.to_owned() };
        let url = Url::parse(&text).map_err(|e| format!("{address} is no address: {e}"))?;
        if url.scheme() != "http" {
            return Err("ask for addresses of https with CONNECT".to_owned());
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("{address} names no host"));
        };
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let line = (!is_tunnel).then(|| format!("{method} {} {version}", path));
        Ok(Target { host: host.to_owned(), port, line })
    }
}

/// The head for the host itself, after which the connection ends: the next request may be for another.
fn onward(line: &str, head: &str) -> String {
    let ours = ["connection:", "proxy-connection:", "proxy-authorization:", "keep-alive:"];
    let fields = head.split("\r\n").skip(1).take_while(|field| !field.is_empty());
    let fields = fields.filter(|field| {
        let field = field.to_ascii_lowercase();
        !ours.iter().any(|name| field.starts_with(name))
    });
    let mut onward = format!("{line}\r\n");
    for field in fields {
        onward.push_str(field);
        onward.push_str("\r\n");
    }
    onward.push_str("Connection: close\r\n\r\n");
    onward
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn target(line: &str) -> Result<(String, u16, Option<String>), String> {
        let head = format!("{line}\r\nHost: x\r\n\r\n");
        Target::of(&head).map(|found| (found.host, found.port, found.line))
    }

    #[test]
    fn a_request_says_where_it_goes() {
        let tunnel = |host: &str, port| Ok((host.to_owned(), port, None));
        assert_eq!(target("CONNECT example.com:443 HTTP/1.1"), tunnel("example.com", 443));
        assert_eq!(target("CONNECT EXAMPLE.com:80 HTTP/1.1"), tunnel("example.com", 80));
        assert_eq!(target("CONNECT 0x7f000001:1 HTTP/1.1"), tunnel("127.0.0.1", 1));
        assert_eq!(target("CONNECT [::1]:1 HTTP/1.1"), tunnel("[::1]", 1));
        let plain = |port, line: &str| Ok(("a.example".to_owned(), port, Some(line.to_owned())));
        let asked = target("GET http://a.example/b?c=d HTTP/1.1");
        assert_eq!(asked, plain(80, "GET /b?c=d HTTP/1.1"));
        assert_eq!(
            target("GET http://me:secret@a.example:81 HTTP/1.1"),
            plain(81, "GET / HTTP/1.1")
        );
        for odd in ["", "GET / HTTP/1.1", "GET https://a/ HTTP/1.1", "CONNECT  HTTP/1.1", "x y"] {
            assert!(target(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_host_gets_what_is_meant_for_it() {
        let head = "GET http://a/ HTTP/1.1\r\nHost: a\r\nProxy-Authorization: secret\r\n\
                    Connection: keep-alive\r\nAccept: b\r\n\r\n";
        let is = "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nConnection: close\r\n\r\n";
        assert_eq!(onward("GET / HTTP/1.1", head), is);
    }

    /// What the proxy answers to these bytes, with this port of 127.0.0.1 open.
    async fn answer(port: u16, request: &str) -> (String, Vec<String>) {
        let private = PrivateHosts::from(vec![("127.0.0.1".to_owned(), port)]);
        let proxy = Proxy::new(private);
        let (mut build, theirs) = UnixStream::pair().unwrap();
        build.write_all(request.as_bytes()).await.unwrap();
        build.shutdown().await.unwrap();
        let _ = proxy.carry(theirs).await;
        let mut answer = String::new();
        build.read_to_string(&mut answer).await.unwrap();
        (answer, proxy.take_refused())
    }

    #[tokio::test]
    async fn only_what_is_allowed_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = tokio::spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..2 {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = String::new();
                connection.read_to_string(&mut request).await.unwrap();
                seen.push(request);
                connection.write_all(b"HTTP/1.1 200 OK\r\n\r\nhere").await.unwrap();
            }
            seen
        });
        let plain = format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\n\r\n");
        assert_eq!(answer(port, &plain).await.0, "HTTP/1.1 200 OK\r\n\r\nhere");
        let tunnel = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nabc");
        let (said, refused) = answer(port, &tunnel).await;
        assert_eq!(said, "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhere");
        assert!(refused.is_empty());
        assert_eq!(served.await.unwrap()[1], "abc");

        let own = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        // This sends nothing. The address is the machine's own, wherever it is.
        own.connect("192.0.2.1:9").unwrap();
        let own = own.local_addr().unwrap().ip();
        for host in [
            "127.0.0.1:1".to_owned(),
            "localhost:80".to_owned(),
            format!("{own}:80"),
            "2130706433:80".to_owned(),
            "0:80".to_owned(),
            "[::1]:80".to_owned(),
            "[::ffff:10.0.0.1]:80".to_owned(),
            "169.254.169.254:80".to_owned(),
            "10.0.0.1:443".to_owned(),
            "1.1.1.1:25".to_owned(),
        ] {
            let (said, refused) = answer(port, &format!("CONNECT {host} HTTP/1.1\r\n\r\n")).await;
            assert!(said.starts_with("HTTP/1.1 403 "), "{host}: {said}");
            assert_eq!(refused.len(), 1, "{host}");
        }
        assert!(answer(port, "nothing\r\n\r\n").await.0.starts_with("HTTP/1.1 400 "));
    }
}
