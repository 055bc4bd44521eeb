//! Idle connections to upstreams.

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

/// How long a connection may be idle. Common servers close idle connections after 2 s or later. A
/// request on a connection that its server is closing would look unanswered, and a new connection
/// on the same machine is cheap.
const REST: Duration = Duration::from_secs(1);
/// The maximum number of idle connections to one upstream.
const MOST: usize = 256;

/// The idle connections of a worker. The one that was used last is taken first.
#[derive(Default)]
pub struct Pool {
    waiting: RefCell<HashMap<SocketAddr, Vec<(UpstreamConn, Instant)>>>,
    is_swept: Cell<bool>,
}

impl Pool {
    /// An idle connection that the upstream is not known to have closed.
    pub async fn take(&self, to: SocketAddr) -> Option<UpstreamConn> {
        loop {
            let (mut upstream, since) = self.waiting.borrow_mut().get_mut(&to)?.pop()?;
            let fresh = since.elapsed() < REST;
            if fresh && poll_fn(|cx| Poll::Ready(upstream.is_ready(cx))).await {
                return Some(upstream);
            }
        }
    }

    /// Takes a connection back, if it can carry another request.
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

    /// Closes connections that were idle for too long. Returns whether any are left.
    fn end_old(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|_, there| {
            there.retain(|(_, since)| since.elapsed() < REST);
            !there.is_empty()
        });
        !waiting.is_empty()
    }
}

/// Closes old connections until none are left.
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
