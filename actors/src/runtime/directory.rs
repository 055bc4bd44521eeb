//! The directory of owners. It wakes an owner when a message for it arrives, and retires idle
//! owners. Only the directory wakes owners, and never two of one id, so a resource has one writer in a
//! process. The version of the record in the store guards against two of several processes.

use super::{
    entries::Pending,
    guard::{Guard, Intensity},
    handle::shard_of,
    health::Health,
    host::Host,
    messages::{Ask, Heard, Leave, OwnerReply, Retire, Rider, Wait, Waiter},
    owner::{Attempt, Owner},
    permit::Permit,
    resource::{Input, Resource},
};
use actix::prelude::*;
use contract::{Fault, Timestamp};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use store::Lease;
use tokio::sync::oneshot;

/// How long an owner that is restarted or retired may take to stop.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// The limits of owners.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// An owner is retired after this time without a message.
    pub idle: Duration,
    /// How often the directory looks for idle owners.
    pub sweep: Duration,
    /// How many messages may wait for one owner.
    pub longest_queue: u64,
    /// How long a caller waits for a reply.
    pub answer_within: Duration,
    /// How long an owner waits for a write.
    pub write_within: Duration,
    pub intensity: Intensity,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            idle: Duration::from_secs(600),
            sweep: Duration::from_secs(60),
            longest_queue: 256,
            answer_within: Duration::from_secs(30),
            write_within: Duration::from_secs(30),
            intensity: Intensity::default(),
        }
    }
}

/// The owners of one kind on one arbiter.
pub struct Directory<R: Resource> {
    host: Arc<R::Host>,
    rules: Rules,
    shard: usize,
    shards: usize,
    owners: HashMap<R::Key, AwakeOwner<R>>,
    /// The leases for which all owners were woken whose work the holder before had begun.
    resumed: HashSet<Lease>,
}

struct AwakeOwner<R: Resource> {
    addr: Addr<Owner<R>>,
    health: Arc<Health>,
    used: Timestamp,
}

/// A command for the owner of `id`.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Deliver<R: Resource> {
    pub(super) id: R::Key,
    pub(super) input: Input<R>,
    pub(super) rider: Rider<R>,
    pub(super) begun: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<Result<OwnerReply<R>, Fault>>,
}

/// Asks for the state of the resource when it is what the waiter waits for.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Await<R: Resource> {
    pub(super) id: R::Key,
    pub(super) waiter: Waiter<R>,
}

/// Wakes the owners whose work this process, or the holder of the lease before it, may have begun. Sent at the
/// start of the platform, and when leases were got or lost.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Resume;

/// Another process has written the record of this resource, or removed it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct WrittenByOther<R: Resource>(pub(super) R::Key);

/// An operator restarts an owner. True: the owner was in memory.
#[derive(Message)]
#[rtype(result = "bool")]
pub(super) struct Restart<R: Resource>(pub(super) R::Key);

impl<R: Resource> Unpin for Directory<R> {}

impl<R: Resource> Actor for Directory<R> {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        // The mailbox needs no bound: permits of the handle bound the commands.
        ctx.set_mailbox_capacity(usize::MAX >> 8);
        self.sweep_later(ctx);
    }
}

impl<R: Resource> Supervised for Directory<R> {}

impl<R: Resource> Directory<R> {
    pub(super) fn new(host: Arc<R::Host>, rules: Rules, (shard, shards): (usize, usize)) -> Self {
        Directory { host, rules, shard, shards, owners: HashMap::new(), resumed: HashSet::new() }
    }

    /// `again`: an earlier owner may have left a write under way.
    fn wake(&mut self, id: R::Key, again: bool) -> &mut AwakeOwner<R> {
        let host = &self.host;
        let clock = host.clock().clone();
        let used = clock.now();
        let health =
            host.registry().add_owner(R::TREE, &id.to_string(), self.rules.longest_queue, used);
        // After Resume, only this process begins work under this lease. So an owner that is woken now begins
        // it for the first time.
        let lease = host.store().lease::<R>(&id);
        let is_first =
            lease.is_some_and(|lease| lease.is_shared() && self.resumed.contains(&lease));
        let attempt = if is_first { Attempt::First } else { Attempt::Again };
        let owner = Owner::<R>::new(id, host.clone(), health.clone(), self.rules, attempt, again);
        let addr = Guard::start(owner, self.rules.intensity, health.clone(), clock);
        let entry = AwakeOwner { addr, health, used };
        self.owners.entry(id).insert_entry(entry).into_mut()
    }

    fn sweep_later(&self, ctx: &mut Context<Self>) {
        let pause = self.host.clock().sleep(self.rules.sweep).into_actor(self);
        ctx.spawn(pause.map(|(), directory, ctx| {
            directory.sweep(ctx);
            directory.sweep_later(ctx);
        }));
    }

    /// Asks idle owners to retire. A command that reaches a retired owner has not begun, so
    /// [`OwnerOf::ask_with`](super::handle::OwnerOf::ask_with) sends it again.
    fn sweep(&self, ctx: &mut Context<Self>) {
        let now = self.host.clock().now();
        let idle = |entry: &AwakeOwner<R>| {
            now.since(entry.used) >= self.rules.idle && !entry.health.has_given_up()
        };
        for (id, entry) in self.owners.iter().filter(|(_, entry)| idle(entry)) {
            let (id, addr) = (*id, entry.addr.clone());
            let left = tokio::time::timeout(LEAVE_WITHIN, addr.send(Retire)).into_actor(self);
            ctx.spawn(left.map(move |left, directory, _| {
                // Another owner of this id may have been woken since.
                let same = directory.owners.get(&id).is_some_and(|e| e.addr == addr);
                if same && matches!(left, Ok(Ok(true) | Err(_))) {
                    directory.owners.remove(&id);
                    directory.host.registry().remove(R::TREE, &id.to_string());
                    // What another process wrote meanwhile was told to an owner that did not hear it.
                    if !directory.host.store().is_alone() {
                        directory.wake_to_work(id);
                    }
                }
            }));
        }
    }

    /// Whether there is an owner, which may be parked.
    fn is_awake(&self, id: R::Key) -> bool {
        let entry = self.owners.get(&id);
        entry.is_some_and(|entry| entry.addr.connected() || entry.health.has_given_up())
    }

    /// Wakes an owner that sleeps, if its record asks for work and this process acts for it.
    fn wake_to_work(&mut self, id: R::Key) {
        let store = self.host.store();
        if self.is_awake(id) || store.lease::<R>(&id).is_none() {
            return;
        }
        match store.get::<R>(&id) {
            Ok(Some(stored)) if stored.task().is_some() => drop(self.wake(id, false)),
            Ok(_) => {}
            Err(e) => {
                tracing::error!(kind = R::TREE, %id, error = %e, "a record cannot be read");
            }
        }
    }

    /// Finds or wakes the owner of `id`. `None`: the owner is parked.
    fn find(&mut self, id: R::Key) -> Option<&mut AwakeOwner<R>> {
        match self.owners.get(&id) {
            Some(entry) if entry.addr.connected() => {}
            Some(entry) if entry.health.has_given_up() => return None,
            _ => return Some(self.wake(id, false)),
        }
        let entry = self.owners.get_mut(&id)?;
        entry.used = self.host.clock().now();
        Some(entry)
    }
}

impl<R: Resource> Handler<Deliver<R>> for Directory<R> {
    type Result = ();
    fn handle(&mut self, ask: Deliver<R>, _: &mut Self::Context) {
        let Deliver { id, input, rider, begun, reply } = ask;
        let Some(entry) = self.find(id) else {
            let _ = reply.send(Err(Fault::Parked(R::TREE)));
            return;
        };
        match Permit::take(entry.health.queue().clone()) {
            #[allow(clippy::disallowed_methods, reason = "the permit bounds it")]
            Some(permit) => entry.addr.do_send(Ask { input, rider, begun, reply, permit }),
            None => {
                let _ = reply.send(Err(Fault::Busy));
            }
        }
    }
}

impl<R: Resource> Handler<Await<R>> for Directory<R> {
    type Result = ();
    fn handle(&mut self, wait: Await<R>, _: &mut Self::Context) {
        let Some(entry) = self.find(wait.id) else { return };
        if let Some(permit) = Permit::take(entry.health.queue().clone()) {
            #[allow(clippy::disallowed_methods, reason = "the permit bounds it")]
            entry.addr.do_send(Wait { waiter: wait.waiter, permit });
        }
    }
}

impl<R: Resource> Handler<Resume> for Directory<R> {
    type Result = ();
    fn handle(&mut self, _: Resume, _: &mut Self::Context) {
        for entry in self.owners.values() {
            #[allow(clippy::disallowed_methods, reason = "it comes when leases change hands")]
            entry.addr.do_send(Heard::Leases);
        }
        let store = self.host.store().clone();
        let held: HashSet<_> = store.leases().into_iter().collect();
        for id in store.newest::<R>(&Pending, None).keys() {
            match id {
                Ok(id) if shard_of(id, self.shards) == self.shard => {
                    if store.lease::<R>(&id).is_some() && !self.is_awake(id) {
                        self.wake(id, false);
                    }
                }
                Ok(_) => {}
                Err(e) => {
                    tracing::error!(kind = R::TREE, error = %e, "the resources that are not idle cannot be read");
                }
            }
        }
        self.resumed = held;
    }
}

impl<R: Resource> Handler<WrittenByOther<R>> for Directory<R> {
    type Result = ();
    fn handle(&mut self, WrittenByOther(id): WrittenByOther<R>, _: &mut Self::Context) {
        let found = match self.host.store().get::<R>(&id) {
            Ok(found) => found,
            Err(e) => {
                return tracing::error!(kind = R::TREE, %id, error = %e, "a record that another node has written cannot be read");
            }
        };
        if let Some(stored) = &found {
            R::written(id, None, &stored.state, &self.host);
        }
        match self.owners.get(&id).filter(|entry| entry.addr.connected()) {
            #[allow(clippy::disallowed_methods, reason = "the feed of the store bounds it")]
            Some(entry) => entry.addr.do_send(Heard::Written),
            None => self.wake_to_work(id),
        }
    }
}

impl<R: Resource> Handler<Restart<R>> for Directory<R> {
    type Result = ResponseActFuture<Self, bool>;
    /// The new owner starts when the old one has stopped, so that it reads the last write of the
    /// old one. After [`LEAVE_WITHIN`] it starts anyway: the version of the record in the store
    /// refuses the writes of one of the two.
    fn handle(&mut self, Restart(id): Restart<R>, _: &mut Self::Context) -> Self::Result {
        let Some(old) = self.owners.get(&id).map(|entry| entry.addr.clone()) else {
            return Box::pin(fut::ready(false));
        };
        let (leaves, left) = oneshot::channel();
        let asked = old.clone();
        let left = async move {
            let _ = asked.send(Leave(leaves)).await;
            let _ = left.await;
        };
        let left = tokio::time::timeout(LEAVE_WITHIN, left).into_actor(self);
        Box::pin(left.map(move |_, directory, _| {
            // The old owner may have retired meanwhile, and another of this id may have been woken.
            if directory.owners.get(&id).is_some_and(|entry| entry.addr == old) {
                directory.owners.remove(&id);
                directory.host.registry().remove(R::TREE, &id.to_string());
            }
            if !directory.owners.contains_key(&id) {
                directory.wake(id, true);
            }
            true
        }))
    }
}
