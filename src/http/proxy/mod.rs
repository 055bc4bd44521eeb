//! Forwards requests to the live server of an instance.
//!
//! Bytes are forwarded as they arrive, in both directions and with backpressure; only the buffers
//! of two connections hold any. The caller of this module authorizes the request and chooses the
//! upstream. The proxy tells the caller whether it may send the same request to another upstream.

mod bodies;
mod fields;
mod half_close;
mod pool;
mod tunnel;
mod upstream;

#[cfg(test)]
mod tests;

pub use half_close::{HalfClose, Watched};

use actix_http::{Payload, Request, Response, Version, body::BoxBody};
use bodies::{Download, EmptyBody, Progress, Upload};
use fields::Framing;
use hyper::body::{Body, Incoming};
use pool::Pool;
use std::{net::SocketAddr, rc::Rc, time::Duration};
use upstream::{Unanswered, UpstreamConn};

/// Deadlines for upstreams and clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For an upstream, to accept a connection. Upstreams run on this machine.
    pub connect: Duration,
    /// For an upstream, to begin its answer, counted from the last progress of the request.
    pub answer: Duration,
    /// For an upstream, between two parts of its answer. Event streams may be silent for long; a
    /// client that disconnects is noticed without this deadline.
    pub pause: Duration,
    /// For a client, between two parts of its request.
    pub upload: Duration,
    /// For both sides of an upgraded connection, without any bytes.
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

/// What the upstream learns about the client. Upstreams trust these headers, so the client's own
/// values are dropped.
#[derive(Debug, Clone, Copy)]
pub struct Forwarded<'a> {
    /// The client's address, for `X-Forwarded-For`.
    pub client: &'a str,
    /// The client's scheme, `http` or `https`, for `X-Forwarded-Proto`.
    pub scheme: &'a str,
    /// The host that the client asked, for `X-Forwarded-Host` and `Host`. Most servers read only
    /// `Host`, to build absolute URLs and to check the origins of browsers.
    pub host: &'a str,
    /// The prefix that was removed from the path, for `X-Forwarded-Prefix`. Empty: none was.
    pub prefix: &'a str,
}

/// Why the upstream has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFault {
    /// The upstream accepts no connection. The request was not executed and is unchanged: the
    /// caller may forward it again.
    #[error("the upstream takes no connections: {0}")]
    NotConnected(std::io::Error),
    /// The upstream closed the connection before it answered. The request may have been executed.
    #[error("the upstream ended the connection and gave no answer")]
    NoAnswer,
    /// The upstream did not begin its answer in time. The request may have been executed.
    #[error("the upstream gave no answer in time")]
    TooLate,
    /// The answer is not HTTP, or not an answer to this request. The request may have been
    /// executed.
    #[error("the upstream gave an answer that cannot be passed on: {0}")]
    BadAnswer(String),
    /// The proxy cannot forward this request.
    #[error("{0}")]
    BadRequest(&'static str),
    /// The client did not send its request in time.
    #[error("the request did not arrive in time")]
    ClientTooSlow,
    /// The client closed its side of the connection, so nobody reads an answer.
    #[error("the client has gone")]
    ClientGone,
}

/// The connections of one worker to all upstreams.
#[derive(Clone)]
pub struct Upstreams {
    pool: Rc<Pool>,
    limits: Rc<Limits>,
}

impl Upstreams {
    pub fn new(limits: Limits) -> Self {
        Upstreams { pool: Rc::new(Pool::default()), limits: Rc::new(limits) }
    }

    /// Sends a request to an upstream. Returns the answer as soon as its head has arrived.
    ///
    /// `path` is the path and query for the upstream. The proxy forwards it unchanged: it decodes
    /// and resolves nothing. No path can select another upstream.
    ///
    /// A request is sent twice only if this cannot execute it twice: nothing of it was sent, or it
    /// is idempotent, has no body, and a reused connection closed before the answer.
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
        // The payload of an upgrade is not a body: the tunnel takes it after the answer.
        let payload = if plan.upgrade { Payload::None } else { request.take_payload() };
        let mut upload = Upload::new(payload, plan.framing, progress.clone());
        let half_close = request.conn_data::<HalfClose>().cloned();
        loop {
            let onward = fields::onward(request.head(), &plan, &target, facts, upload)?;
            match upstream.send(onward, &progress, half_close.as_ref(), &self.limits).await {
                Ok(answer) => {
                    return self.answer(request, &plan, answer, upstream, progress, half_close);
                }
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

    /// The answer for the client.
    fn answer(
        &self,
        request: &mut Request,
        plan: &Plan,
        answer: hyper::Response<Incoming>,
        upstream: UpstreamConn,
        progress: Rc<Progress>,
        half_close: Option<HalfClose>,
    ) -> Result<Response<BoxBody>, ProxyFault> {
        let (head, body) = answer.into_parts();
        let switches = head.status == hyper::StatusCode::SWITCHING_PROTOCOLS;
        if switches && !plan.upgrade {
            return Err(ProxyFault::BadAnswer("it switches protocols unasked".into()));
        }
        let mut answer = fields::back(&head)?;
        if switches {
            let Some(parts) = upstream.into_parts() else { return Err(ProxyFault::NoAnswer) };
            let body = tunnel::open(parts, request.take_payload(), self.limits.tunnel, half_close);
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
        let body = Download::new(body, length, upstream, self, progress, half_close);
        Ok(answer.set_body(BoxBody::new(body)))
    }
}

/// A new connection that accepted no request counts as not connected.
fn ended_at_once() -> ProxyFault {
    ProxyFault::NotConnected(std::io::ErrorKind::ConnectionAborted.into())
}

/// How to forward a request.
struct Plan {
    framing: Framing,
    /// Whether the client asks for another protocol. The HTTP library supports only WebSocket.
    upgrade: bool,
    /// Whether the request may be sent twice: it is idempotent and has no body.
    repeatable: bool,
    is_head: bool,
    /// Whether only the end of the connection can end a body of unknown length: HTTP/1.0 has no
    /// chunks, and the HTTP library writes none after a request to upgrade.
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
