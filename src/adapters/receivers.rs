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
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
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
        let retry_after = retry_after(&answer, SystemTime::now());
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

/// The header `Retry-After` of the statuses that have it: seconds or a date (RFC 9110).
fn retry_after(answer: &Response, now: SystemTime) -> Option<Duration> {
    if ![429, 503].contains(&answer.status().as_u16()) {
        return None;
    }
    let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
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
