//! The handle to the owners of a kind. The rest of the program reaches one of them as [`OwnerOf`].

use super::{
    clock::Clock,
    directory::{Await, Deliver, Directory, Restart, Resume, Rules, WrittenByOther},
    guard::Guard,
    host::Host,
    messages::{OwnerReply, Rider, Waiter},
    permit::{Permit, Permits},
    resource::{Input, Resource, StateOf},
    store::Store,
};
use actix::Addr;
use actix_rt::ArbiterHandle;
use contract::Fault;
use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use store::Change;
use tokio::sync::oneshot;

/// How many commands to one kind may be in flight on one arbiter. Further commands fail with
/// [`Fault::Busy`].
const MOST_IN_FLIGHT: u64 = 8192;

/// The pause before [`Handle::wait_until`] asks again an owner that did not reply.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

pub struct Handle<R: Resource> {
    shards: Arc<[Shard<R>]>,
    rules: Rules,
    clock: Clock,
}

struct Shard<R: Resource> {
    directory: Addr<Directory<R>>,
    in_flight: Permits,
}

impl<R: Resource> Clone for Handle<R> {
    fn clone(&self) -> Self {
        Handle { shards: self.shards.clone(), rules: self.rules, clock: self.clock.clone() }
    }
}

/// The shard, of `shards`, that a resource lives on.
pub(crate) fn shard_of(id: impl Hash, shards: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    usize::try_from(hasher.finish() % shards.max(1) as u64).unwrap_or(0)
}

impl<R: Resource> Handle<R> {
    /// Starts a directory on each arbiter.
    pub async fn start(
        host: &Arc<R::Host>,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Self, Fault> {
        let mut shards = Vec::new();
        for (shard, arbiter) in arbiters.iter().enumerate() {
            let (started, address) = oneshot::channel();
            let (host, of) = (host.clone(), arbiters.len());
            arbiter.spawn_fn(move || {
                let name = format!("{}-directory-{shard}", R::TREE);
                let clock = host.clock().clone();
                let health =
                    host.registry().add("directory", Some(&name), MOST_IN_FLIGHT, clock.now());
                let directory = Directory::<R>::new(host, rules, (shard, of));
                let _ = started.send(Guard::start(directory, rules.intensity, health, clock));
            });
            let directory = address.await.map_err(|_| Fault::Internal)?;
            shards.push(Shard { directory, in_flight: Permits::new(MOST_IN_FLIGHT) });
        }
        Ok(Handle { shards: shards.into(), rules, clock: host.clock().clone() })
    }

    /// Resumes the effects that this process, or the one that acted before it, may have begun.
    pub async fn resume(&self) {
        for shard in self.shards.iter() {
            let _ = shard.directory.send(Resume).await;
        }
    }

    /// Tells the owner of a record that another process has written it.
    pub async fn written_by_other(&self, id: R::Key) {
        if let Ok(shard) = self.shard(id) {
            let _ = shard.directory.send(WrittenByOther(id)).await;
        }
    }

    fn shard(&self, id: R::Key) -> Result<&Shard<R>, Fault> {
        self.shards.get(shard_of(id, self.shards.len())).ok_or(Fault::Internal)
    }

    /// See [`OwnerOf::ask_with`].
    async fn ask_with(
        &self,
        id: R::Key,
        input: Input<R>,
        rider: Rider<R>,
    ) -> Result<OwnerReply<R>, Fault> {
        let shard = self.shard(id)?;
        let _permit = Permit::take(&shard.in_flight).ok_or(Fault::Busy)?;
        for _ in 0..3 {
            let begun = Arc::new(AtomicBool::new(false));
            let (reply, replied) = oneshot::channel();
            let (input, rider) = (input.clone(), rider.clone());
            // Do not wait for the delivery: that would wake this thread once more for each call. If
            // the message is lost, `reply` is dropped with it.
            #[allow(clippy::disallowed_methods, reason = "the permit bounds it")]
            shard.directory.do_send(Deliver { id, input, rider, begun: begun.clone(), reply });
            match tokio::time::timeout(self.rules.answer_within, replied).await {
                Ok(Ok(reply)) => return reply,
                // The owner retired or crashed before the command began.
                Ok(Err(_)) if !begun.load(SeqCst) => {}
                Ok(Err(_)) => return Err(Fault::Uncertain),
                // If this side sets `begun` first, the owner skips the command.
                Err(_) if begun.swap(true, SeqCst) => return Err(Fault::Uncertain),
                Err(_) => return Err(Fault::Busy),
            }
        }
        Err(Fault::Busy)
    }

    /// See [`OwnerOf::wait_until`].
    async fn wait_until(
        &self,
        id: R::Key,
        within: Duration,
        enough: fn(&R::State) -> bool,
    ) -> Result<Option<StateOf<R>>, Fault> {
        let shard = self.shard(id)?;
        let _permit = Permit::take(&shard.in_flight).ok_or(Fault::Busy)?;
        let wait = async {
            loop {
                let (reply, replied) = oneshot::channel();
                let waiter = Waiter { enough, reply };
                let sent = shard.directory.send(Await { id, waiter }).await;
                match (sent, replied.await) {
                    (Ok(()), Ok(state)) => return state,
                    // The owner was restarted or could not read, or its queue was full: ask again.
                    _ => self.clock.sleep(ASK_AGAIN_AFTER).await,
                }
            }
        };
        tokio::time::timeout(within, wait)
            .await
            .map_err(|_| Fault::NoAnswer("the owner of this object"))
    }

    /// Restarts an owner from its stored state. False: the owner is not in memory.
    pub(crate) async fn restart(&self, id: R::Key) -> Result<bool, Fault> {
        self.shard(id)?.directory.send(Restart(id)).await.map_err(|_| Fault::Busy)
    }
}

/// The owner of a resource, as the rest of the program reaches it.
pub struct OwnerOf<'a, R: Resource> {
    owners: Result<&'a Handle<R>, Fault>,
    id: R::Key,
    store: &'a Store,
}

impl<'a, R: Resource> OwnerOf<'a, R> {
    /// The owner of `id`. The fault says why no owner can be reached now.
    pub fn new(owners: Result<&'a Handle<R>, Fault>, id: R::Key, store: &'a Store) -> Self {
        OwnerOf { owners, id, store }
    }

    /// Sends a command, without a rider.
    pub async fn ask(self, command: R::Command) -> Result<StateOf<R>, Fault> {
        self.ask_alone(Input::Command(command)).await
    }

    /// Creates the resource. An existing resource stays as it is.
    pub async fn create(self, new: R::New) -> Result<StateOf<R>, Fault> {
        self.ask_alone(Input::Create(Box::new(new))).await
    }

    async fn ask_alone(self, input: Input<R>) -> Result<StateOf<R>, Fault> {
        Ok(self.ask_with(input, Arc::new(|_| Ok(Change::new()))).await?.state)
    }

    /// Sends a command. Does nothing if there is no such resource.
    pub async fn ask_if_there(self, command: R::Command) -> Result<(), Fault> {
        self.tell_if_there(Input::Command(command)).await
    }

    /// Sends an input. Does nothing if there is no such resource.
    pub async fn tell_if_there(self, input: Input<R>) -> Result<(), Fault> {
        match self.ask_alone(input).await {
            Ok(_) | Err(Fault::NotFound(_)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Sends an input. `rider` makes further changes from the new state, for the same transaction.
    ///
    /// The reply comes when the change is on the disk. If the owner stops before the command
    /// begins, the command is sent again. If the owner crashes after that, the reply is
    /// [`Fault::Uncertain`].
    pub async fn ask_with(self, input: Input<R>, rider: Rider<R>) -> Result<OwnerReply<R>, Fault> {
        self.owners?.ask_with(self.id, input, rider).await
    }

    /// Waits until no effect is pending, and returns the state. `None`: there is no such resource.
    pub async fn wait_idle(self, within: Duration) -> Result<Option<StateOf<R>>, Fault> {
        self.wait_until(within, |_| false).await
    }

    /// Waits until no effect is pending or the state is `enough`, and returns the state. `None`: there
    /// is no such resource.
    pub async fn wait_until(
        self,
        within: Duration,
        enough: fn(&R::State) -> bool,
    ) -> Result<Option<StateOf<R>>, Fault> {
        self.owners?.wait_until(self.id, within, enough).await
    }

    /// The state when no effect is pending, or as it is after this time.
    pub async fn idle_or_late(self, within: Duration) -> Result<StateOf<R>, Fault> {
        let (store, id) = (self.store, self.id);
        let state = match self.wait_idle(within).await {
            Ok(state) => state,
            // The work goes on, whatever keeps this wait from its end.
            Err(_) => store.get::<R>(&id)?.map(StateOf),
        };
        state.ok_or(Fault::NotFound(R::NOUN))
    }

    /// Restarts the owner from its stored state. False: the owner is not in memory.
    pub async fn restart(self) -> Result<bool, Fault> {
        self.owners?.restart(self.id).await
    }
}
