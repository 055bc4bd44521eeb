//! The JSON body of a request, within the limits of size, time and memory.
//!
//! Most bodies come together with the head: those cost nothing but themselves. Who is waited for
//! takes a share of the memory for bodies that are still arriving, and an address that has no call
//! left is not waited for at all.

use super::{Edge, budget::Share, reply, request};
use actix_http::RequestHead;
use actix_web::error::PayloadError;
use actors::call::rate_limit::RateKey;
use bytes::{Bytes, BytesMut};
use contract::Fault;
use futures_util::{Stream, StreamExt};
use std::{future::poll_fn, task::Poll, time::Duration};

/// How long a body may take to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// What a request that is waited for takes up, besides its body.
const WAITING: usize = 16 << 10;

/// A body that has arrived.
pub struct Body {
    /// The body.
    pub bytes: Bytes,
    /// Its memory, where it had to be waited for.
    pub room: Option<Share>,
}

/// Reads a body to its end.
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

/// The next part, or the end, or `None` where it has to be waited for. The HTTP library asks for
/// an answer before it hands over what came behind the head, and once more after that: only the
/// second time that nothing is there, nothing has come.
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

/// What has come of a body. A body of one part is not copied.
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
