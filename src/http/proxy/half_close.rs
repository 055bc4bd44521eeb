//! Signals between a client's connection and the answer on it. The HTTP library hides both ends of
//! a connection, so the signals bypass it.
//!
//! They are needed for two cases:
//! - A client that disconnects is noticed at once, as in nginx and Go's server: no upstream works
//!   or keeps an event stream open for nobody. The library can refuse half-closed connections, but
//!   would then cancel every handler, even one that counts the bytes of a broken upload.
//! - A client learns at once that the upstream ended a tunnel, and can reconnect. The library waits
//!   five seconds for a client that has not closed its own side.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The state of both ends of a client's connection, shared by the connection and its requests.
#[derive(Debug, Clone, Default)]
pub struct HalfClose(Rc<Ends>);

#[derive(Debug, Default)]
struct Ends {
    client: Cell<bool>,
    ours: Cell<bool>,
}

impl HalfClose {
    /// Whether the client has closed its side. It sends nothing more and has most likely
    /// disconnected. No waker is needed: the task that reads the connection then polls the answer.
    pub fn client_ended(&self) -> bool {
        self.0.client.get()
    }

    /// Closes the service's side once everything is sent. The HTTP library alone would first wait
    /// for a client that has not sent its whole request.
    pub fn end(&self) {
        self.0.ours.set(true);
    }
}

/// A client's connection that updates its [`HalfClose`].
#[derive(Debug)]
pub struct Watched<T, P = ()> {
    io: T,
    half_close: HalfClose,
    is_shut: bool,
    /// Lasts as long as the connection.
    _permit: P,
}

impl<T, P> Watched<T, P> {
    pub fn new(io: T, permit: P) -> Self {
        Watched { io, half_close: HalfClose::default(), is_shut: false, _permit: permit }
    }

    pub fn half_close(&self) -> &HalfClose {
        &self.half_close
    }
}

impl<T: AsyncRead + Unpin, P: Unpin> AsyncRead for Watched<T, P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = into.remaining();
        match ready!(Pin::new(&mut self.io).poll_read(cx, into)) {
            // A client of TLS that closes without saying so. HTTP has ends of its own.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {}
            read => read?,
        }
        if room > 0 && into.remaining() == room {
            self.half_close.0.client.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin, P: Unpin> AsyncWrite for Watched<T, P> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        if self.half_close.0.ours.get() && !self.is_shut {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            self.is_shut = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
