//! What an owner does where other processes share the store: it acts only under the lease of its resource, and follows
//! what others write.

use super::{Attempt, Owner, Record, Turn};
use crate::runtime::{
    host::Host,
    messages::Heard,
    resource::{Kept, Resource, Retry},
};
use actix::Context;
use futures_util::future::{Either, select};
use std::{pin::pin, sync::Arc, task::Poll, time::Duration};
use store::Lease;

/// How often an effect that waits looks whether its lease is held.
const CHECKS_LEASE_EVERY: Duration = Duration::from_millis(500);

impl<R: Resource> Owner<R> {
    /// Another process wrote the record, or other leases are held.
    pub(super) fn on_heard(&mut self, heard: Heard, ctx: &mut Context<Self>) {
        if self.doubtful {
            return self.turns.push_front(Turn::Look(None));
        }
        let found = match self.host.store().get::<R>(&self.id) {
            Ok(found) => found,
            Err(fault) => return self.look_again(&fault, ctx),
        };
        let before = std::mem::replace(&mut self.record, found);
        let version = |record: &Record<R>| record.as_ref().map(|stored| stored.version());
        let is_other = version(&before) != version(&self.record);
        if heard == Heard::Leases && !self.acts() {
            self.perform(self.pause(), Attempt::Again, ctx);
        } else if is_other {
            self.follow(before, ctx);
        }
        self.reply_to_waiting();
    }

    /// Another writer changed the record. The work under way goes on if the record asks for the same.
    pub(super) fn follow(&mut self, before: Record<R>, ctx: &mut Context<Self>) {
        let work = |record: &Record<R>| record.as_deref().and_then(|stored| Kept::work(stored));
        let begun_anew = |record: &Record<R>| record.as_ref().map(|stored| stored.begun_anew);
        let is_same = match (work(&before), work(&self.record)) {
            (Some(was), Some(is)) => {
                was.is_same(&is) && begun_anew(&before) == begun_anew(&self.record)
            }
            (was, is) => was.is_none() && is.is_none(),
        };
        match self.lease {
            Some(lease) if lease.is_shared() && self.acts() => {
                if !is_same || self.performing.is_none() {
                    self.begin(self.pause(), ctx);
                }
            }
            // The writer may have begun the work: another node, or a second owner in a process that is alone.
            _ => self.perform(self.pause(), Attempt::Again, ctx),
        }
    }

    /// Whether this owner still holds the lease under which it began.
    pub(super) fn acts(&self) -> bool {
        self.lease.is_some_and(|lease| self.host.store().has(lease))
    }
}

/// Does work as long as the lease is held. That is checked each time the work is polled, and every half second
/// while it waits.
pub(super) async fn under<H: Host, T>(
    lease: Lease,
    host: Arc<H>,
    work: impl Future<Output = Result<T, Retry>>,
) -> Result<T, Retry> {
    if !lease.is_shared() {
        return work.await;
    }
    let lost = || Err(Retry("another node acts for this object now".into()));
    let mut work = pin!(work);
    let checked = std::future::poll_fn(|context| match host.store().has(lease) {
        true => work.as_mut().poll(context),
        false => Poll::Ready(lost()),
    });
    let ends = pin!(async {
        while host.store().has(lease) {
            host.clock().sleep(CHECKS_LEASE_EVERY).await;
        }
    });
    match select(pin!(checked), ends).await {
        Either::Left((done, _)) => done,
        Either::Right(((), _)) => lost(),
    }
}
