//! One connection to an upstream. No task of its own drives the connection: the request or the body
//! that waits for bytes polls it, so no request waits until another task wakes.

use super::{
    HalfClose, Limits, ProxyFault,
    bodies::{Progress, Upload},
};
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, Parts, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    time::{Instant, Sleep, sleep_until, timeout},
};

/// The read buffer. The head of an answer must fit into it.
const BUFFER: usize = 64 << 10;

pub struct UpstreamConn {
    to: SocketAddr,
    sender: SendRequest<Upload>,
    /// Boxed because it is large and moves between owners.
    mover: Option<Box<Connection<TokioIo<TcpStream>, Upload>>>,
    is_over: bool,
    is_old: bool,
    /// Fires when the upstream takes too long.
    pub alarm: Alarm,
}

/// Why a request has no answer.
pub enum Unanswered {
    /// Nothing was sent. This is the request.
    Unsent(Box<hyper::Request<Upload>>),
    /// The connection closed before the answer.
    Ended,
    /// A retry cannot help.
    Fault(ProxyFault),
}

impl UpstreamConn {
    pub async fn connect(to: SocketAddr, within: Duration) -> io::Result<UpstreamConn> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let stream = timeout(within, TcpStream::connect(to)).await.map_err(late)??;
        stream.set_nodelay(true)?;
        let begun = Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
        let (sender, mover) = begun.map_err(io::Error::other)?;
        let alarm = Alarm::default();
        Ok(UpstreamConn {
            to,
            sender,
            mover: Some(Box::new(mover)),
            is_over: false,
            is_old: false,
            alarm,
        })
    }

    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Whether the connection has carried a request.
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// Whether the connection could carry another request when it was last polled.
    pub fn is_idle(&self) -> bool {
        !self.is_over && self.sender.is_ready()
    }

    /// Polls the connection. Returns whether it can carry another request.
    pub fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.advance(cx);
        self.is_idle()
    }

    /// Reads and writes as much as possible without waiting.
    pub fn advance(&mut self, cx: &mut Context<'_>) {
        if !self.is_over
            && let Some(mover) = &mut self.mover
        {
            // The request or the body of the answer receives an error, so it is dropped here.
            self.is_over = mover.poll_without_shutdown(cx).is_ready();
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(
        &mut self,
        request: hyper::Request<Upload>,
        progress: &Progress,
        half_close: Option<&HalfClose>,
        limits: &Limits,
    ) -> Result<hyper::Response<Incoming>, Unanswered> {
        self.is_old = true;
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            if half_close.is_some_and(HalfClose::client_ended) {
                return Poll::Ready(Err(ProxyFault::ClientGone));
            }
            self.advance(cx);
            let mut answered = answer.as_mut().poll(cx);
            if self.is_over && answered.is_pending() {
                // A request that was never sent is returned.
                self.mover = None;
                answered = answer.as_mut().poll(cx);
            }
            if answered.is_ready() {
                return answered.map(Ok);
            }
            self.alarm.poll(progress.due(limits), cx).map(|()| Err(progress.late()))
        });
        match answered.await.map_err(Unanswered::Fault)? {
            Ok(answer) => Ok(answer),
            Err(mut e) => Err(match e.take_message() {
                Some(request) => Unanswered::Unsent(Box::new(request)),
                None => progress.blame(e.error()),
            }),
        }
    }

    /// The raw connection after an upgrade, with the bytes that followed the head.
    pub fn into_parts(self) -> Option<Parts<TokioIo<TcpStream>>> {
        self.mover.map(|mover| mover.into_parts())
    }
}

/// A timer that is reset only when necessary: most waits end long before their deadline.
#[derive(Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready at the deadline.
    pub fn poll(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}
