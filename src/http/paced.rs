//! Connections that hand out what arrived in small pieces.
//!
//! The HTTP library reads 128 KiB of a connection before it lets anybody take some of it, and keeps a
//! buffer of that size for as long as the connection is open. A handler that takes what arrives at once
//! keeps the buffer small so; while a handler waits for something else, the library reads on.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that pauses after each piece, until the task that reads it runs again.
#[derive(Debug)]
pub struct Paced<T> {
    io: T,
    /// The size of a piece, in bytes. It is exceeded by at most one read.
    piece: usize,
    /// How much of the piece was read.
    read: usize,
}

impl<T> Paced<T> {
    pub fn new(io: T, piece: usize) -> Self {
        Paced { io, piece, read: 0 }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Paced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= self.piece {
            self.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let done = Pin::new(&mut self.io).poll_read(cx, into);
        self.read = match done {
            Poll::Ready(_) => self.read + into.filled().len() - before,
            Poll::Pending => 0,
        };
        done
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Paced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker;

    #[test]
    fn a_connection_pauses_after_each_piece() {
        let mut connection = Paced::new(tokio::io::repeat(b'a'), 16 << 10);
        let waker = noop_waker();
        let mut context = Context::from_waker(&waker);
        for _ in 0..3 {
            let (mut read, mut space) = (0, [0; 8 << 10]);
            loop {
                let mut into = ReadBuf::new(&mut space);
                match Pin::new(&mut connection).poll_read(&mut context, &mut into) {
                    Poll::Ready(done) => done.unwrap(),
                    Poll::Pending => break,
                }
                read += into.filled().len();
            }
            assert_eq!(read, 16 << 10);
        }
    }
}
