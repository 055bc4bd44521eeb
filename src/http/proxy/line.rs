//! What a client's connection and the answer on it tell each other past the HTTP library, which
//! keeps both ends of a connection to itself.
//!
//! Two things would be worse without it:
//! - A client that goes is seen at once, as nginx and Go's server do it: an upstream does not work
//!   on, or keep an event stream open, for nobody. The library's own setting for that, not to allow
//!   half-closed connections, would drop the work of every handler, such as counting the bytes of
//!   an upload that broke off.
//! - When an upstream ends a tunnel, its client is told at once and can connect again. The library
//!   waits five seconds for a client that has not ended its own side.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The two ends of a client's connection. The connection and each request on it have it.
#[derive(Debug, Clone, Default)]
pub struct Line(Rc<Ends>);

#[derive(Debug, Default)]
struct Ends {
    client: Cell<bool>,
    ours: Cell<bool>,
}

impl Line {
    /// Whether the client has ended its side: it sends nothing any more, and has most likely gone.
    /// One task reads the connection and then asks for the answer, so nobody has to be woken.
    pub fn client_ended(&self) -> bool {
        self.0.client.get()
    }

    /// Ends our side once everything is sent. The HTTP library alone would first wait for a client
    /// that has not sent all it could.
    pub fn end(&self) {
        self.0.ours.set(true);
    }
}

/// A client's connection that keeps its [`Line`].
#[derive(Debug)]
pub struct Watched<T> {
    io: T,
    line: Line,
    is_shut: bool,
}

impl<T> Watched<T> {
    /// A connection that was just accepted.
    pub fn new(io: T) -> Self {
        Watched { io, line: Line::default(), is_shut: false }
    }

    /// What it is made of.
    pub fn io(&self) -> &T {
        &self.io
    }

    /// Its ends.
    pub fn line(&self) -> &Line {
        &self.line
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = into.remaining();
        ready!(Pin::new(&mut self.io).poll_read(cx, into))?;
        if room > 0 && into.remaining() == room {
            self.line.0.client.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        if self.line.0.ours.get() && !self.is_shut {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            self.is_shut = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
