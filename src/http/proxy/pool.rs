//! Connections to upstreams that wait for their next request.

use super::upstream::UpstreamConn;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::poll_fn,
    net::SocketAddr,
    rc::{Rc, Weak},
    task::Poll,
    time::Duration,
};
use tokio::time::Instant;

/// How long a connection may wait. Shorter than any common server lets it (the shortest is 2 s):
/// what it ends just then looks like a request that was not answered. Another connection costs
/// next to nothing on the same machine.
const REST: Duration = Duration::from_secs(1);
/// Connections that wait for one upstream.
const MOST: usize = 256;

/// The waiting connections of a worker. The last one that came goes first.
#[derive(Default)]
pub struct Pool {
    waiting: RefCell<HashMap<SocketAddr, Vec<(UpstreamConn, Instant)>>>,
    is_swept: Cell<bool>,
}

impl Pool {
    /// A connection that the upstream has not ended, as far as this side can know.
    pub async fn take(&self, to: SocketAddr) -> Option<UpstreamConn> {
        loop {
            let (mut upstream, since) = self.waiting.borrow_mut().get_mut(&to)?.pop()?;
            let fresh = since.elapsed() < REST;
            if fresh && poll_fn(|cx| Poll::Ready(upstream.is_ready(cx))).await {
                return Some(upstream);
            }
        }
    }

    /// Takes back a connection that has done its work, if it can do more.
    pub fn give(self: &Rc<Self>, upstream: UpstreamConn) {
        if !upstream.is_idle() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        let there = waiting.entry(upstream.to()).or_default();
        if there.len() < MOST {
            there.push((upstream, Instant::now()));
        }
        if !self.is_swept.replace(true) {
            actix_rt::spawn(sweep(Rc::downgrade(self)));
        }
    }

    /// Ends what has waited for too long. Says whether any is left.
    fn end_old(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|_, there| {
            there.retain(|(_, since)| since.elapsed() < REST);
            !there.is_empty()
        });
        !waiting.is_empty()
    }
}

/// Ends old connections as long as there are any.
#[allow(clippy::disallowed_methods, reason = "connections of the machine age by its time")]
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(REST).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.end_old() {
            pool.is_swept.set(false);
            return;
        }
    }
}
