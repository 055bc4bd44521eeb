//! One connection to an upstream. It has no task of its own: whoever waits for what comes over it
//! moves it along, so that a request never waits for another task to be woken.

use super::{
    Limits, Line, ProxyFault,
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

/// Bytes that are read ahead; the head of an answer has to fit in.
const BUFFER: usize = 64 << 10;

/// A connection to an upstream.
pub struct UpstreamConn {
    to: SocketAddr,
    sender: SendRequest<Upload>,
    /// Boxed: it is large, and goes from hand to hand.
    mover: Option<Box<Connection<TokioIo<TcpStream>, Upload>>>,
    is_over: bool,
    is_old: bool,
    /// Rings when the upstream takes too long.
    pub alarm: Alarm,
}

/// Why a request has no answer.
pub enum Unanswered {
    /// Nothing of it was sent. Here it is.
    Unsent(Box<hyper::Request<Upload>>),
    /// The connection ended first.
    Ended,
    /// Sending it again is no help.
    Fault(ProxyFault),
}

impl UpstreamConn {
    /// A new connection.
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

    /// Where it leads.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Whether it has carried a request.
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// Whether it could carry another request when it was last moved.
    pub fn is_idle(&self) -> bool {
        !self.is_over && self.sender.is_ready()
    }

    /// Whether it can carry another request.
    pub fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.advance(cx);
        self.is_idle()
    }

    /// Reads and writes what can be read and written now.
    pub fn advance(&mut self, cx: &mut Context<'_>) {
        if !self.is_over
            && let Some(mover) = &mut self.mover
        {
            // What went wrong, the request or the body of the answer is told.
            self.is_over = mover.poll_without_shutdown(cx).is_ready();
        }
    }

    /// Sends a request, and waits for the head of the answer.
    pub async fn send(
        &mut self,
        request: hyper::Request<Upload>,
        progress: &Progress,
        line: Option<&Line>,
        limits: &Limits,
    ) -> Result<hyper::Response<Incoming>, Unanswered> {
        self.is_old = true;
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            if line.is_some_and(Line::client_ended) {
                return Poll::Ready(Err(ProxyFault::ClientGone));
            }
            self.advance(cx);
            let mut answered = answer.as_mut().poll(cx);
            if self.is_over && answered.is_pending() {
                // A request that was not begun comes back.
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

    /// The bare connection, with what was read behind the head that ended its use for HTTP.
    pub fn into_parts(self) -> Option<Parts<TokioIo<TcpStream>>> {
        self.mover.map(|mover| mover.into_parts())
    }
}

/// A timer that is set anew only when it rings too early: most of what it is for is over long
/// before.
#[derive(Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready once that moment has come.
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
