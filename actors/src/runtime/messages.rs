//! What is sent to an owner, and what it replies.

pub use super::decide::Rider;

use super::{
    permit::{Permit, Permits},
    resource::{Input, Resource, StateOf},
};
use actix::prelude::*;
use contract::Fault;
use std::sync::{Arc, atomic::AtomicBool};
use tokio::sync::oneshot;

/// A command. If the reply is lost, `begun` tells the sender whether to send the command again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ask<R: Resource> {
    pub(super) input: Input<R>,
    pub(super) rider: Rider<R>,
    pub(super) begun: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<Result<OwnerReply<R>, Fault>>,
    pub(super) permit: Permit<Arc<Permits>>,
}

/// What an owner replies to a command.
#[derive(Debug)]
pub struct OwnerReply<R: Resource> {
    /// The state after the command. If the command ended the resource, the state before.
    pub state: StateOf<R>,
    /// Whether this command changed the record.
    pub changed: bool,
}

/// Who waits until no effect is pending or the state is `enough`.
pub(super) struct Waiter<R: Resource> {
    pub(super) enough: fn(&R::State) -> bool,
    /// Gets the state. `None`: there is no such resource.
    pub(super) reply: oneshot::Sender<Option<StateOf<R>>>,
}

/// Asks for the state when it is what the waiter waits for.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wait<R: Resource> {
    pub(super) waiter: Waiter<R>,
    pub(super) permit: Permit<Arc<Permits>>,
}

/// Sent by the directory: what other processes did that share the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub enum Heard {
    /// The record was written or removed.
    Written,
    /// This process may act for the resource from now on, or no longer.
    Leases,
}

/// Sent by the directory. True: the owner was idle and has stopped.
#[derive(Message)]
#[rtype(result = "bool")]
pub struct Retire;

/// Sent by the directory, which starts a new owner when this one has stopped.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Leave(pub(super) oneshot::Sender<()>);
