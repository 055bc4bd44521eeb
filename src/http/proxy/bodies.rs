//! Forwards the bodies of requests and answers, part by part.

use super::{
    HalfClose, Limits, ProxyFault, Upstreams,
    fields::Framing,
    pool::Pool,
    upstream::{Unanswered, UpstreamConn},
};
use actix_http::{
    Payload,
    body::{BodySize, MessageBody},
    error::PayloadError,
};
use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    cell::Cell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

/// The progress of a request's body.
pub struct Progress {
    at: Cell<Instant>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// The upstream must read the body or answer.
    WithUpstream,
    /// The client must send more of the body.
    WithClient,
    /// The client broke the body off, or sent an invalid one.
    Broken,
}

impl Default for Progress {
    fn default() -> Self {
        Progress { at: Cell::new(Instant::now()), state: Cell::new(State::WithUpstream) }
    }
}

impl Progress {
    fn beat(&self) {
        self.at.set(Instant::now());
    }

    /// The deadline for the head of the answer, in the current state.
    pub fn due(&self, limits: &Limits) -> Instant {
        let waits = self.state.get() == State::WithClient;
        self.at.get() + if waits { limits.upload } else { limits.answer }
    }

    /// The error of a missed deadline, by who missed it.
    pub fn late(&self) -> ProxyFault {
        match self.state.get() {
            State::WithClient => ProxyFault::ClientTooSlow,
            _ => ProxyFault::TooLate,
        }
    }

    /// The error of a failed request, by who caused it.
    pub fn blame(&self, e: &hyper::Error) -> Unanswered {
        match self.state.get() {
            State::Broken => {
                Unanswered::Fault(ProxyFault::BadRequest("the body did not arrive whole"))
            }
            _ if e.is_parse() => Unanswered::Fault(ProxyFault::BadAnswer(e.to_string())),
            _ => Unanswered::Ended,
        }
    }
}

pub struct Upload {
    payload: Payload,
    /// Bytes that the client has yet to send.
    left: SizeHint,
    is_over: bool,
    progress: Rc<Progress>,
}

impl Upload {
    pub fn new(payload: Payload, framing: Framing, progress: Rc<Progress>) -> Self {
        let left = match framing {
            Framing::None => SizeHint::with_exact(0),
            Framing::Length(length) => SizeHint::with_exact(length),
            Framing::Chunked => SizeHint::default(),
        };
        Upload { payload, left, is_over: framing == Framing::None, progress }
    }

    /// The payload of a body that nobody has read.
    pub fn into_payload(self) -> Payload {
        self.payload
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = PayloadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PayloadError>>> {
        let this = &mut *self;
        let next = Pin::new(&mut this.payload).poll_next(cx);
        let state = match &next {
            Poll::Pending => State::WithClient,
            Poll::Ready(Some(Err(_))) => State::Broken,
            Poll::Ready(_) => State::WithUpstream,
        };
        this.progress.state.set(state);
        let next = ready!(next);
        this.progress.beat();
        this.is_over = !matches!(next, Some(Ok(_)));
        if let (Some(Ok(part)), Some(left)) = (&next, this.left.exact()) {
            let left = left.saturating_sub(part.len() as u64);
            this.left = SizeHint::with_exact(left);
            this.is_over = left == 0;
        }
        Poll::Ready(next.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.left
    }
}

/// Why an answer is incomplete. The HTTP library then closes the client's connection, so that the
/// client cannot mistake a part for the whole.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The upstream closed the connection or violated the protocol.
    #[error("the upstream broke its answer off: {0}")]
    Upstream(hyper::Error),
    /// The upstream was silent for too long.
    #[error("the upstream stopped in its answer")]
    Quiet,
    #[error("the client has gone")]
    ClientGone,
}

/// The body of an answer.
pub struct Download {
    body: Incoming,
    size: BodySize,
    upstream: Option<UpstreamConn>,
    pool: Rc<Pool>,
    progress: Rc<Progress>,
    pause: Duration,
    half_close: Option<HalfClose>,
    /// The error for the next poll. The HTTP library sends nothing after an error, so it must first
    /// send the parts that have arrived.
    last: Option<Broken>,
}

impl Download {
    /// A body from an upstream. A complete body returns its connection to the pool.
    pub fn new(
        body: Incoming,
        length: Option<u64>,
        upstream: UpstreamConn,
        upstreams: &Upstreams,
        progress: Rc<Progress>,
        half_close: Option<HalfClose>,
    ) -> Self {
        progress.beat();
        let size = length.map_or(BodySize::Stream, BodySize::Sized);
        let (pool, pause) = (upstreams.pool.clone(), upstreams.limits.pause);
        Download {
            body,
            size,
            upstream: Some(upstream),
            pool,
            progress,
            pause,
            half_close,
            last: None,
        }
    }

    fn part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let next = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(part) => Some(Ok(part)),
                    // Drops trailers: the HTTP library cannot send them.
                    Err(_) => continue,
                },
                Some(Err(e)) => Some(Err(Broken::Upstream(e))),
                None => None,
            };
            return Poll::Ready(next);
        }
    }

    /// Returns the connection to the pool after a complete body.
    fn rest(&mut self, cx: &mut Context<'_>) {
        if let Some(mut upstream) = self.upstream.take() {
            upstream.advance(cx);
            self.pool.give(upstream);
        }
    }
}

impl MessageBody for Download {
    type Error = Broken;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        let this = &mut *self;
        if let Some(last) = this.last.take() {
            return Poll::Ready(Some(Err(last)));
        }
        if this.upstream.is_none() {
            return Poll::Ready(None);
        }
        if this.half_close.as_ref().is_some_and(HalfClose::client_ended) {
            return Poll::Ready(Some(Err(Broken::ClientGone)));
        }
        let mut part = this.part(cx);
        if part.is_pending()
            && let Some(upstream) = &mut this.upstream
        {
            upstream.advance(cx);
            part = this.part(cx);
        }
        match part {
            Poll::Ready(Some(Ok(part))) => {
                this.progress.beat();
                if this.body.is_end_stream() {
                    this.rest(cx);
                }
                Poll::Ready(Some(Ok(part)))
            }
            Poll::Ready(Some(Err(broken))) => {
                (this.last, this.upstream) = (Some(broken), None);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => {
                this.rest(cx);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let due = this.progress.at.get() + this.pause;
                let alarm = this.upstream.as_mut().map(|upstream| upstream.alarm.poll(due, cx));
                let quiet = alarm.is_some_and(|alarm| alarm.is_ready());
                if quiet { Poll::Ready(Some(Err(Broken::Quiet))) } else { Poll::Pending }
            }
        }
    }
}

/// An empty body: the answer to `HEAD`, or an answer without content.
pub struct EmptyBody(pub Option<u64>);

impl MessageBody for EmptyBody {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        self.0.map_or(BodySize::None, BodySize::Sized)
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}
