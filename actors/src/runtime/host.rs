//! What the runtime needs of the program that it is part of.

use super::{
    clock::Clock,
    health::Registry,
    resource::{Moment, Resource, Retry},
    store::Store,
    uses::{LimitsCount, Uses},
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

    /// What a change of a resource adds to what its organization uses of its quotas, and to what it needs of others.
    /// It is written together with the change. If the `limits` count, a change that exceeds one of them is refused.
    fn accounted<R: Resource<Host = Self>>(
        &self,
        _id: &R::Key,
        _before: (Option<&R::State>, Uses),
        _after: (Option<&R::State>, Uses),
        _limits: LimitsCount,
    ) -> Result<Change, Fault> {
        Ok(Change::new())
    }

    /// What [`outgoing`](Host::outgoing) returned was written.
    fn has_outgoing(&self);

    /// Tells some children of the resource with this id to delete themselves. Returns whether none is
    /// left.
    fn delete_children<'a>(
        &'a self,
        id: &'a (dyn Any + Send + Sync),
    ) -> LocalBoxFuture<'a, Result<bool, Retry>>;
}
