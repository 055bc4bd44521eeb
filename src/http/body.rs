//! Reads the JSON body of a request, within limits of size, time and memory.
//!
//! Most bodies arrive together with the head and cost only their own bytes. A body that is still
//! arriving takes a share of the memory budget. The server does not wait for the body of a caller
//! that has no call left.

use super::{Edge, budget::Share, reply, request};
use actix_http::RequestHead;
use actix_web::error::PayloadError;
use actors::call::rate_limit::RateKey;
use bytes::{Bytes, BytesMut};
use contract::Fault;
use futures_util::{Stream, StreamExt};
use std::{future::poll_fn, task::Poll, time::Duration};

/// The deadline for a body to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// The overhead of a request whose body is still arriving, in bytes.
pub(super) const WAITING: usize = 16 << 10;

pub struct Body {
    pub bytes: Bytes,
    /// The share of the memory budget, if the body arrived after the head.
    pub room: Option<Share>,
}

pub async fn read(
    head: &RequestHead,
    edge: &Edge,
    mut payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> Result<Body, Fault> {
    let mut parts = Parts { limit: edge.shared.largest_body, ..Parts::default() };
    let mut was_pending = false;
    while let Some(part) = at_hand(&mut payload, &mut was_pending).await {
        match part {
            Some(part) => parts.add(part)?,
            None => return Ok(Body { bytes: parts.whole(), room: None }),
        }
    }
    if reply::left(head, edge).remaining == 0 {
        return Err(Fault::RateLimited { retry_after: 1 });
    }
    let holder = RateKey::address(request::origin(head, edge).address);
    let mut room = edge.shared.arriving.share(Some(holder), WAITING + parts.len())?;
    let rest = async {
        while let Some(part) = payload.next().await {
            room.grow(part.as_ref().map_or(0, Bytes::len))?;
            parts.add(part)?;
        }
        Ok(())
    };
    tokio::time::timeout(WITHIN, rest).await.unwrap_or(Err(Fault::RequestTimeout))?;
    Ok(Body { bytes: parts.whole(), room: Some(room) })
}

type Part = Result<Bytes, PayloadError>;

/// Returns `Some` with the next part or the end of the body, or `None` if the rest has yet to
/// arrive. The HTTP library polls a handler once before it delivers the bytes that followed the
/// head, and once after. So only the second `Pending` means that nothing has arrived.
async fn at_hand(
    payload: &mut (impl Stream<Item = Part> + Unpin),
    was_pending: &mut bool,
) -> Option<Option<Part>> {
    poll_fn(|cx| match payload.poll_next_unpin(cx) {
        Poll::Ready(part) => Poll::Ready(Some(part)),
        Poll::Pending if *was_pending => Poll::Ready(None),
        Poll::Pending => {
            *was_pending = true;
            Poll::Pending
        }
    })
    .await
}

/// The parts of a body that have arrived. A body of one part is not copied.
#[derive(Default)]
struct Parts {
    first: Bytes,
    all: BytesMut,
    limit: usize,
}

impl Parts {
    fn len(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    fn add(&mut self, part: Part) -> Result<(), Fault> {
        let part =
            part.map_err(|e| Fault::Malformed(format!("the body did not arrive whole: {e}")))?;
        if self.len() + part.len() > self.limit {
            return Err(Fault::TooLarge { limit: self.limit as u64 });
        }
        if self.first.is_empty() {
            self.first = part;
        } else {
            if self.all.is_empty() {
                self.all.extend_from_slice(&self.first);
            }
            self.all.extend_from_slice(&part);
        }
        Ok(())
    }

    fn whole(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}
