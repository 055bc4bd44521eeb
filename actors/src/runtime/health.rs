//! The health of actors, kept outside of the actors: it outlives their crashes, and a reader does
//! not wait for the actor.

use super::permit::Permits;
use contract::{
    Timestamp,
    operators::{Actor, ActorState, Handling, Mailbox, Panic},
};
use dashmap::DashMap;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// An actor that works on one message for longer than this is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// The health of one actor.
#[derive(Debug)]
pub struct Health {
    kind: &'static str,
    resource: Option<Box<str>>,
    since: Timestamp,
    queue: Arc<Permits>,
    handled: AtomicU64,
    crashes: AtomicU64,
    life: AtomicU8,
    /// Whether the actor owns a resource. Operators may restart owners.
    is_owner: bool,
    /// When the actor took the message in hand, in milliseconds since the epoch. 0: no message.
    begun: AtomicI64,
    /// The name of the last message that the actor took in hand.
    message: Mutex<String>,
    last_panic: Mutex<Option<Panic>>,
}

const RUNNING: u8 = 0;
const RESTARTING: u8 = 1;
const GAVE_UP: u8 = 2;

impl Health {
    fn new(
        kind: &'static str,
        resource: Option<Box<str>>,
        capacity: u64,
        since: Timestamp,
    ) -> Self {
        Health {
            kind,
            resource,
            since,
            queue: Arc::new(Permits::new(capacity)),
            handled: AtomicU64::new(0),
            crashes: AtomicU64::new(0),
            life: AtomicU8::new(RUNNING),
            is_owner: false,
            begun: AtomicI64::new(0),
            message: Mutex::default(),
            last_panic: Mutex::new(None),
        }
    }

    /// The bound of the queue of the actor. Each message carries a permit, because actix bounds
    /// neither `send` nor `do_send`.
    pub fn queue(&self) -> &Arc<Permits> {
        &self.queue
    }

    /// The actor took this message in hand.
    pub fn begin(&self, now: Timestamp, message: String) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
        self.begun.store(now.as_millis(), Relaxed);
        self.handled.fetch_add(1, Relaxed);
    }

    pub fn end(&self) {
        self.begun.store(0, Relaxed);
    }

    /// The actor panicked and will be restarted.
    pub fn crashed(&self, at: Timestamp, message: &str) {
        self.crashes.fetch_add(1, Relaxed);
        self.life.store(RESTARTING, Relaxed);
        self.begun.store(0, Relaxed);
        let panic = Panic { at, message: message.to_owned() };
        *self.last_panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
    }

    /// The actor was started: for the first time, or by an operator, who then knows of the crashes so
    /// far.
    pub fn started(&self) {
        self.crashes.store(0, Relaxed);
        self.restarted();
    }

    pub fn restarted(&self) {
        self.life.store(RUNNING, Relaxed);
    }

    /// The actor panicked too often and stays down.
    pub fn gave_up(&self) {
        self.life.store(GAVE_UP, Relaxed);
    }

    /// Whether the actor stays down until an operator restarts it.
    pub fn has_given_up(&self) -> bool {
        self.life.load(Relaxed) == GAVE_UP
    }

    /// The id that operators use: the id of the resource if there is one, otherwise the kind.
    pub fn id(&self) -> &str {
        self.resource.as_deref().unwrap_or(self.kind)
    }

    /// How often the actor was restarted after a panic.
    pub fn restarts(&self) -> u64 {
        self.crashes.load(Relaxed)
    }

    pub fn kind(&self) -> &'static str {
        self.kind
    }

    pub fn state(&self, now: Timestamp) -> ActorState {
        let begun = self.begun.load(Relaxed);
        match self.life.load(Relaxed) {
            GAVE_UP => ActorState::GaveUp,
            RESTARTING => ActorState::Restarting,
            _ if begun > 0 && now.since(Timestamp::from_millis(begun)) > STUCK_AFTER => {
                ActorState::Stuck
            }
            _ => ActorState::Running,
        }
    }

    /// Everything that an operator sees.
    pub fn observe(&self, now: Timestamp) -> Actor {
        let begun = self.begun.load(Relaxed);
        Actor {
            id: self.id().to_owned(),
            kind: self.kind.to_owned(),
            resource: self.resource.as_deref().map(str::to_owned),
            state: self.state(now),
            mailbox: Mailbox { length: self.queue.taken(), capacity: self.queue.limit() },
            handled: self.handled.load(Relaxed),
            restarts: self.crashes.load(Relaxed),
            last_panic: self.last_panic.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            handling: (begun > 0).then(|| Handling {
                message: self.message.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                elapsed_ms: now.since(Timestamp::from_millis(begun)).as_millis() as u64,
            }),
            uptime_ms: now.since(self.since).as_millis() as u64,
            restartable: self.is_owner,
            node: None,
        }
    }
}

/// Kind and id of an actor.
type Name = (&'static str, Box<str>);

/// The health of every actor in memory.
#[derive(Clone, Default)]
pub struct Registry(Arc<DashMap<Name, Arc<Health>>>);

impl Registry {
    /// Adds an actor. If the registry has an actor of this name, keeps its health.
    pub fn add(
        &self,
        kind: &'static str,
        resource: Option<&str>,
        capacity: u64,
        now: Timestamp,
    ) -> Arc<Health> {
        self.find_or_add(kind, resource, || {
            Health::new(kind, resource.map(Into::into), capacity, now)
        })
    }

    /// Adds the owner of a resource, like [`add`](Registry::add). Operators may restart it.
    pub(super) fn add_owner(
        &self,
        kind: &'static str,
        id: &str,
        capacity: u64,
        now: Timestamp,
    ) -> Arc<Health> {
        self.find_or_add(kind, Some(id), || Health {
            is_owner: true,
            ..Health::new(kind, Some(id.into()), capacity, now)
        })
    }

    fn find_or_add(
        &self,
        kind: &'static str,
        resource: Option<&str>,
        new: impl FnOnce() -> Health,
    ) -> Arc<Health> {
        let key = (kind, resource.unwrap_or(kind).into());
        self.0.entry(key).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Forgets an actor that left memory.
    pub fn remove(&self, kind: &'static str, id: &str) {
        self.0.remove(&(kind, Box::from(id)));
    }

    pub fn each(&self, mut visit: impl FnMut(&Health)) {
        self.0.iter().for_each(|entry| visit(entry.value()));
    }
}
