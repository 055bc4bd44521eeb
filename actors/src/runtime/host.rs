//! What the runtime needs of the program that it is part of.

use super::{
    clock::Clock,
    health::Registry,
    resource::{Moment, Resource, Retry},
    store::Store,
};
use contract::Fault;
use futures_util::future::LocalBoxFuture;
use std::any::Any;
use store::Change;

/// The program that owners run in. Effects get it.
pub trait Host: Send + Sync + Sized + 'static {
    fn store(&self) -> &Store;

    fn clock(&self) -> &Clock;

    /// The health of every actor in memory.
    fn registry(&self) -> &Registry;

    /// What a change of a resource tells others. It is written together with the change.
    fn outgoing<R: Resource<Host = Self>>(
        &self,
        at: &Moment<R>,
        before: Option<&R::State>,
        after: &R::State,
    ) -> Result<Change, Fault>;

    /// What [`outgoing`](Host::outgoing) returned was written.
    fn has_outgoing(&self);

    /// Tells some children of the resource with this id to delete themselves. Returns whether none is
    /// left.
    fn delete_children<'a>(
        &'a self,
        id: &'a (dyn Any + Send + Sync),
    ) -> LocalBoxFuture<'a, Result<bool, Retry>>;
}
