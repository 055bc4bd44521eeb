//! An upgraded connection: forwards bytes in both directions.

use super::HalfClose;
use actix_http::{
    Payload,
    body::{BodyStream, BoxBody},
};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use hyper::client::conn::http1::Parts;
use hyper_util::rt::TokioIo;
use std::{cell::Cell, convert::Infallible, rc::Rc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
    time::{Instant, timeout_at},
};

/// The maximum number of bytes per part.
const PART: usize = 16 << 10;

/// When bytes last went in either direction.
type LastMoved = Rc<Cell<Instant>>;

/// Opens a tunnel. Returns the upstream's bytes as a body; a task forwards the client's bytes. The
/// tunnel ends when the upstream closes its side. When the client closes its side, the upstream
/// learns of it and may send more.
pub fn open(
    parts: Parts<TokioIo<TcpStream>>,
    client: Payload,
    idle: Duration,
    half_close: Option<HalfClose>,
) -> BoxBody {
    let (from_upstream, to_upstream) = parts.io.into_inner().into_split();
    let moved: LastMoved = Rc::new(Cell::new(Instant::now()));
    let upload = Task(actix_rt::spawn(upload(client, to_upstream, moved.clone())));
    let download = Download {
        from_upstream,
        buffer: BytesMut::from(parts.read_buf),
        moved,
        idle,
        half_close,
        _upload: upload,
    };
    BoxBody::new(BodyStream::new(stream::unfold(download, Download::next)))
}

async fn upload(mut client: Payload, mut to_upstream: OwnedWriteHalf, moved: LastMoved) {
    while let Some(Ok(part)) = client.next().await {
        moved.set(Instant::now());
        if to_upstream.write_all(&part).await.is_err() {
            // The other direction notices this by itself.
            return;
        }
    }
    let _ = to_upstream.shutdown().await;
}

struct Download {
    from_upstream: OwnedReadHalf,
    /// Begins with the bytes that followed the head of the answer.
    buffer: BytesMut,
    moved: LastMoved,
    idle: Duration,
    half_close: Option<HalfClose>,
    _upload: Task,
}

impl Download {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        while self.buffer.is_empty() {
            self.buffer.reserve(PART);
            let quiet_at = self.moved.get() + self.idle;
            match timeout_at(quiet_at, self.from_upstream.read_buf(&mut self.buffer)).await {
                Ok(Ok(read)) if read > 0 => self.moved.set(Instant::now()),
                Err(_) if self.moved.get() + self.idle > Instant::now() => {}
                _ => {
                    self.half_close.iter().for_each(HalfClose::end);
                    return None;
                }
            }
        }
        Some((Ok(self.buffer.split().freeze()), self))
    }
}

/// A task that is aborted on drop.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
