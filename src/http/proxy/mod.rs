//! Requests for the live server of an instance, passed on to where it listens.
//!
//! Bytes are passed on as they come, in both directions and with backpressure: nothing is kept but
//! what the buffers of two connections hold. Nothing is decided here about who may call or where
//! an instance listens: the caller says so, and is told whether the same request may be sent to
//! another place.

mod bodies;
mod fields;
mod line;
mod pool;
mod tunnel;
mod upstream;

#[cfg(test)]
mod tests;

pub use line::{Line, Watched};

use actix_http::{Payload, Request, Response, Version, body::BoxBody};
use bodies::{Download, EmptyBody, Progress, Upload};
use fields::Framing;
use hyper::body::{Body, Incoming};
use pool::Pool;
use std::{net::SocketAddr, rc::Rc, time::Duration};
use upstream::{Unanswered, UpstreamConn};

/// How long an upstream, or the client, may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// To take a connection. It is on this machine.
    pub connect: Duration,
    /// To begin its answer, counted from when the request was last seen to move.
    pub answer: Duration,
    /// Between two parts of an answer. Event streams are quiet for long; that their client has
    /// gone is seen without it.
    pub pause: Duration,
    /// For the client, between two parts of its request.
    pub upload: Duration,
    /// For both sides of a connection that was upgraded.
    pub tunnel: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(2),
            answer: Duration::from_secs(60),
            pause: Duration::from_secs(300),
            upload: Duration::from_secs(60),
            tunnel: Duration::from_secs(3600),
        }
    }
}

/// What the upstream is told of the way that a request came. What the client itself says about it
/// is not passed on, because upstreams believe these headers.
#[derive(Debug, Clone, Copy)]
pub struct Forwarded<'a> {
    /// The client's address: `X-Forwarded-For`. Nothing that anybody else wrote there is passed on.
    pub client: &'a str,
    /// `http` or `https`, as the client spoke: `X-Forwarded-Proto`.
    pub scheme: &'a str,
    /// The host that the client asked: `X-Forwarded-Host`, and `Host` too. Most servers know only
    /// the latter, and build absolute addresses and check the origins of browsers with it.
    pub host: &'a str,
    /// What was taken off the front of the path: `X-Forwarded-Prefix`.
    pub prefix: &'a str,
}

/// Why there is no answer of the upstream.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFault {
    /// The upstream takes no connections. Nothing was done, and the request is as it was: it can be
    /// forwarded again.
    #[error("the upstream takes no connections: {0}")]
    NotConnected(std::io::Error),
    /// The upstream ended the connection before it answered. It may have been done.
    #[error("the upstream ended the connection and gave no answer")]
    NoAnswer,
    /// The upstream did not begin its answer in time. It may have been done.
    #[error("the upstream gave no answer in time")]
    TooLate,
    /// The upstream answered something that is not HTTP, or that nobody asked for. It may have been
    /// done.
    #[error("the upstream gave an answer that cannot be passed on: {0}")]
    BadAnswer(String),
    /// The request cannot be passed on.
    #[error("{0}")]
    BadRequest(&'static str),
    /// The client did not send its request in time.
    #[error("the request did not arrive in time")]
    ClientTooSlow,
    /// The client has ended its side, as one that goes does: nobody reads an answer.
    #[error("the client has gone")]
    ClientGone,
}

/// The way to the upstreams. One for each worker.
#[derive(Clone)]
pub struct Upstreams {
    pool: Rc<Pool>,
    limits: Rc<Limits>,
}

impl Upstreams {
    /// With no connections yet.
    pub fn new(limits: Limits) -> Self {
        Upstreams { pool: Rc::new(Pool::default()), limits: Rc::new(limits) }
    }

    /// Sends a request to an upstream, and gives its answer as soon as that begins.
    ///
    /// `path` is what the upstream is asked for, with the query, exactly as it came: nothing is
    /// decoded or resolved in it. It never says whom to ask, so no form of it can.
    ///
    /// A request is sent a second time only where that cannot do anything twice: nothing of it was
    /// sent, or it is idempotent and has no body, and an old connection ended under it.
    pub async fn forward(
        &self,
        request: &mut Request,
        to: SocketAddr,
        path: &str,
        facts: &Forwarded<'_>,
    ) -> Result<Response<BoxBody>, ProxyFault> {
        let plan = Plan::new(request)?;
        let target = fields::target(path)?;
        let mut upstream = match self.pool.take(to).await {
            Some(upstream) => upstream,
            None => self.connect(to).await?,
        };
        let mut again = upstream.is_old();
        let progress = Rc::new(Progress::default());
        // The payload of an upgrade is not a body: it waits for the answer.
        let payload = if plan.upgrade { Payload::None } else { request.take_payload() };
        let mut upload = Upload::new(payload, plan.framing, progress.clone());
        let line = request.conn_data::<Line>().cloned();
        loop {
            let onward = fields::onward(request.head(), &plan, &target, facts, upload)?;
            match upstream.send(onward, &progress, line.as_ref(), &self.limits).await {
                Ok(answer) => return self.answer(request, &plan, answer, upstream, progress, line),
                Err(Unanswered::Unsent(unsent)) => upload = unsent.into_body(),
                Err(Unanswered::Ended) if again && plan.repeatable => {
                    upload = Upload::new(Payload::None, plan.framing, progress.clone());
                }
                Err(Unanswered::Ended) => return Err(ProxyFault::NoAnswer),
                Err(Unanswered::Fault(fault)) => return Err(fault),
            }
            let next = if again { self.connect(to).await } else { Err(ended_at_once()) };
            again = false;
            match next {
                Ok(next) => upstream = next,
                Err(fault) => {
                    if !plan.upgrade {
                        *request.payload() = upload.into_payload();
                    }
                    return Err(fault);
                }
            }
        }
    }

    async fn connect(&self, to: SocketAddr) -> Result<UpstreamConn, ProxyFault> {
        UpstreamConn::connect(to, self.limits.connect).await.map_err(ProxyFault::NotConnected)
    }

    /// The answer as the client gets it.
    fn answer(
        &self,
        request: &mut Request,
        plan: &Plan,
        answer: hyper::Response<Incoming>,
        upstream: UpstreamConn,
        progress: Rc<Progress>,
        line: Option<Line>,
    ) -> Result<Response<BoxBody>, ProxyFault> {
        let (head, body) = answer.into_parts();
        let switches = head.status == hyper::StatusCode::SWITCHING_PROTOCOLS;
        if switches && !plan.upgrade {
            return Err(ProxyFault::BadAnswer("it switches protocols unasked".into()));
        }
        let mut answer = fields::back(&head)?;
        if switches {
            let Some(parts) = upstream.into_parts() else { return Err(ProxyFault::NoAnswer) };
            let body = tunnel::open(parts, request.take_payload(), self.limits.tunnel, line);
            answer.head_mut().set_connection_type(actix_http::ConnectionType::Upgrade);
            return Ok(answer.set_body(body));
        }
        let length =
            if plan.is_head { fields::length(&head.headers) } else { body.size_hint().exact() };
        let is_empty = matches!(head.status.as_u16(), 204 | 304);
        if plan.is_head || is_empty || body.is_end_stream() {
            self.pool.give(upstream);
            let length = length.filter(|_| !is_empty);
            return Ok(answer.set_body(BoxBody::new(EmptyBody(length))));
        }
        if length.is_none() && plan.ends_with_connection {
            answer.head_mut().no_chunking(true);
            answer.head_mut().set_connection_type(actix_http::ConnectionType::Close);
        }
        let body = Download::new(body, length, upstream, self, progress, line);
        Ok(answer.set_body(BoxBody::new(body)))
    }
}

/// A new connection that took nothing is as good as none.
fn ended_at_once() -> ProxyFault {
    ProxyFault::NotConnected(std::io::ErrorKind::ConnectionAborted.into())
}

/// How a request is passed on.
struct Plan {
    framing: Framing,
    /// Whether it asks for another protocol. Of those, the HTTP library lets WebSocket through.
    upgrade: bool,
    /// Whether doing it twice is doing it once, and it can be sent twice.
    repeatable: bool,
    is_head: bool,
    /// Whether only the end of the connection can end a body of unknown length: HTTP/1.0 knows no
    /// chunks, and the HTTP library writes none once it has seen an upgrade.
    ends_with_connection: bool,
}

impl Plan {
    fn new(request: &Request) -> Result<Plan, ProxyFault> {
        let head = request.head();
        if head.method == actix_http::Method::CONNECT {
            return Err(ProxyFault::BadRequest("CONNECT is not served here"));
        }
        let framing = Framing::of(&head.headers);
        let raw = framing != Framing::Chunked && fields::names_websocket(&head.headers);
        if raw && framing != Framing::None {
            return Err(ProxyFault::BadRequest("a request to upgrade may not have a body"));
        }
        let may_upgrade =
            head.version == Version::HTTP_11 && head.method == actix_http::Method::GET;
        Ok(Plan {
            framing,
            upgrade: raw && head.upgrade() && may_upgrade,
            repeatable: framing == Framing::None && head.method.is_idempotent(),
            is_head: head.method == actix_http::Method::HEAD,
            ends_with_connection: raw || head.version < Version::HTTP_11,
        })
    }
}
