//! Receivers of webhooks, over HTTPS.
//!
//! A receiver's address comes from a user, and must not lead into the internal network. Each
//! connection looks its host up, and goes only to the addresses of that look-up which are on the
//! public internet: a name whose answer changes gains nothing. Redirects and proxies are not used.

use super::network::{PrivateHosts, is_public};
use actors::ports::receivers::{Answered, Posted, Receivers};
use async_trait::async_trait;
use contract::WebUrl;
use futures_util::future::BoxFuture;
use reqwest::{
    Client, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, DATE, RETRY_AFTER},
};
use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use url::{Host, Url};

/// How long one attempt may take, the reply included.
const WITHIN: Duration = Duration::from_secs(15);
/// How many bytes of a reply are read.
const REPLY: usize = 1024;

pub struct HttpReceivers {
    /// Connects to public addresses only.
    public: Client,
    /// Connects to any address. Only for the hosts that an operator allows.
    private: Client,
    private_hosts: PrivateHosts,
}

/// Finds the addresses of a host.
type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Finds the public addresses of a host.
struct PublicOnly(LookUp);

/// Why a host has no address to connect to.
#[derive(Debug, thiserror::Error)]
enum NoAddress {
    #[error("the host {0} is not known")]
    Unknown(String),
    #[error(
        "{0} is not on the public internet; an operator can allow it with SVC_WEBHOOK_PRIVATE_HOSTS"
    )]
    Internal(String),
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let found = self.0(host.clone());
        Box::pin(async move {
            let found = found.await.unwrap_or_default();
            if found.is_empty() {
                return Err(NoAddress::Unknown(host).into());
            }
            let public: Vec<_> = found.into_iter().filter(|address| is_public(*address)).collect();
            if public.is_empty() {
                return Err(NoAddress::Internal(host).into());
            }
            // Port 0 stands for the port of the URL.
            let addresses = public.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

fn system_look_up(host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    Box::pin(async move {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

impl HttpReceivers {
    pub fn new(private_hosts: PrivateHosts) -> Result<HttpReceivers, String> {
        HttpReceivers::with(Arc::new(system_look_up), private_hosts)
    }

    fn with(look_up: LookUp, private_hosts: PrivateHosts) -> Result<HttpReceivers, String> {
        let client = || {
            Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |e: reqwest::Error| format!("the client for webhooks: {e}");
        Ok(HttpReceivers {
            public: client().dns_resolver(Arc::new(PublicOnly(look_up))).build().map_err(failed)?,
            private: client().build().map_err(failed)?,
            private_hosts,
        })
    }

    /// The address, and the client that may connect to it.
    fn open(&self, url: &WebUrl) -> Result<(Url, &Client), String> {
        let parsed = Url::parse(url.as_str()).map_err(|e| format!("is no address: {e}"))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("must not contain a user or a password".into());
        }
        let (Some(name), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Err("must name a host".into());
        };
        if self.private_hosts.contains(name, port) {
            return Ok((parsed, &self.private));
        }
        if parsed.scheme() != "https" {
            return Err("must start with https://".into());
        }
        // The client looks only names up.
        let literal = match parsed.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if literal.is_some_and(|address| !is_public(address)) {
            return Err(NoAddress::Internal(name.to_owned()).to_string());
        }
        Ok((parsed, &self.public))
    }

    async fn send(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Result<Answered, String> {
        let begun = Instant::now();
        let (url, client) = self.open(url)?;
        let request = client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let request = headers.into_iter().fold(request, |r, (name, value)| r.header(name, value));
        let late = || format!("the receiver did not answer within {} seconds", WITHIN.as_secs());
        let answer = timeout(WITHIN, request.send()).await.map_err(|_| late())?;
        let mut answer = answer.map_err(|e| in_words(&e))?;
        let retry_after = retry_after(&answer);
        let left = WITHIN.saturating_sub(begun.elapsed());
        let mut reply = Vec::new();
        // The status counts. A reply that breaks off or comes slowly is shown as far as it came.
        let _ = timeout(left, read(&mut answer, &mut reply)).await;
        reply.truncate(REPLY);
        Ok(Answered {
            status: answer.status().as_u16(),
            retry_after,
            reply: String::from_utf8_lossy(&reply).into_owned(),
        })
    }
}

async fn read(answer: &mut Response, reply: &mut Vec<u8>) -> Result<(), reqwest::Error> {
    while reply.len() < REPLY {
        let Some(piece) = answer.chunk().await? else { break };
        reply.extend_from_slice(&piece);
    }
    Ok(())
}

/// Why there is no reply: the first of the causes that people understand.
fn in_words(e: &reqwest::Error) -> String {
    let mut cause: &dyn Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        if let Some(no_address) = cause.downcast_ref::<NoAddress>() {
            return no_address.to_string();
        }
    }
    if e.is_connect() {
        format!("the receiver cannot be reached: {cause}")
    } else {
        format!("the connection broke: {cause}")
    }
}

/// The header `Retry-After` of the statuses that have it: seconds, or a date by the clock of the
/// receiver (RFC 9110).
fn retry_after(answer: &Response) -> Option<Duration> {
    if ![429, 503].contains(&answer.status().as_u16()) {
        return None;
    }
    let header = |name| answer.headers().get(name)?.to_str().ok().map(str::trim);
    let date = |text| httpdate::parse_http_date(text).ok();
    let after = header(RETRY_AFTER)?;
    match after.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => date(after)?.duration_since(date(header(DATE)?)?).ok(),
    }
}

#[async_trait]
impl Receivers for HttpReceivers {
    fn check(&self, url: &WebUrl) -> Result<(), String> {
        self.open(url).map(|_| ())
    }

    async fn post(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Posted {
        let begun = Instant::now();
        let result = self.send(url, headers, body).await;
        Posted { took: begun.elapsed(), result }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// Looks every name up to the next of these answers, and then to the last one.
    fn answers(answers: &[&[&str]]) -> LookUp {
        let parse = |text: &&str| text.parse().unwrap();
        let mut answers: Vec<Vec<IpAddr>> =
            answers.iter().rev().map(|answer| answer.iter().map(parse).collect()).collect();
        let answers = Mutex::new(move || match answers.len() {
            1 => answers.clone().remove(0),
            _ => answers.pop().unwrap(),
        });
        Arc::new(move |_| {
            let found = (answers.lock().unwrap())();
            Box::pin(async move { Ok(found) })
        })
    }

    /// A server on the loopback address that sends this to every connection. Counts connections.
    async fn server(reply: String) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(reply.as_bytes()).await;
            }
        });
        (port, count)
    }

    async fn post(receivers: &HttpReceivers, url: &str) -> Result<Answered, String> {
        receivers.post(&url.parse().unwrap(), vec![], "{}".into()).await.result
    }

    #[test]
    fn addresses_that_no_request_can_go_to_are_refused() {
        let receivers = HttpReceivers::new(vec![("10.0.0.1".into(), 8443)].into()).unwrap();
        let check = |url: &str| receivers.check(&url.parse().unwrap());
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00:ec2::254]/",
            "https://0/",
            "https://10.0.0.1/",
            "https://100.64.0.1:8443/",
        ] {
            assert!(check(url).unwrap_err().contains("public internet"), "{url}");
        }
        for url in ["http://example.com/", "https://me:secret@example.com/", "https://me@1.1.1.1/"]
        {
            assert!(check(url).is_err(), "{url}");
        }
        for url in ["https://example.com/x?y", "http://10.0.0.1:8443/", "https://10.0.0.1:8443/"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let (port, connections) = server("HTTP/1.1 204 No Content\r\n\r\n".into()).await;
        for inside in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let receivers = HttpReceivers::with(answers(&[&[inside]]), PrivateHosts::default());
            let refused = post(&receivers.unwrap(), &format!("https://hooks.test:{port}/")).await;
            assert!(refused.unwrap_err().contains("SVC_WEBHOOK_PRIVATE_HOSTS"), "{inside}");
        }
        let unknown = HttpReceivers::with(answers(&[&[]]), PrivateHosts::default()).unwrap();
        let refused = post(&unknown, &format!("https://hooks.test:{port}/")).await;
        assert_eq!(refused.unwrap_err(), "the host hooks.test is not known");
        assert_eq!(connections.load(SeqCst), 0);
    }

    #[tokio::test]
    async fn a_name_whose_answer_changes_gains_nothing() {
        let look_up = answers(&[&["1.1.1.1"], &["10.0.0.1", "1.1.1.1", "::1"], &["127.0.0.1"]]);
        let resolver = PublicOnly(look_up);
        let look_up = async || {
            let found = resolver.resolve("hooks.test".parse().unwrap()).await;
            found.map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(look_up().await.unwrap(), ["1.1.1.1"]);
        assert_eq!(look_up().await.unwrap(), ["1.1.1.1"], "only the public ones");
        assert!(look_up().await.is_err());
    }

    #[tokio::test]
    async fn a_reply_is_read_in_part_and_a_redirect_is_not_followed() {
        let to = |port: u16| {
            let hosts = vec![("127.0.0.1".into(), port)].into();
            (HttpReceivers::new(hosts).unwrap(), format!("http://127.0.0.1:{port}/"))
        };
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{}", "x".repeat(5000));
        let (port, _) = server(long).await;
        let (receivers, url) = to(port);
        let answered = post(&receivers, &url).await.unwrap();
        assert_eq!((answered.status, answered.reply.len()), (200, REPLY));

        let (elsewhere, connections) = server("HTTP/1.1 200 OK\r\n\r\n".into()).await;
        let moved =
            format!("HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{elsewhere}/\r\n\r\n");
        let (port, _) = server(moved).await;
        let (receivers, url) = to(port);
        assert_eq!(post(&receivers, &url).await.unwrap().status, 307);
        assert_eq!(connections.load(SeqCst), 0);

        let by_date = "Date: Wed, 21 Oct 2026 07:26:00 GMT\r\n\
             Retry-After: Wed, 21 Oct 2026 07:28:00 GMT";
        for headers in ["Retry-After: 120", by_date] {
            let (port, _) = server(format!("HTTP/1.1 429 Busy\r\n{headers}\r\n\r\n")).await;
            let (receivers, url) = to(port);
            let asked = post(&receivers, &url).await.unwrap().retry_after;
            assert_eq!(asked, Some(Duration::from_secs(120)), "{headers}");
        }
        let (receivers, _) = to(port);
        assert!(post(&receivers, "http://127.0.0.1:1/").await.is_err(), "another port of the host");
    }
}
