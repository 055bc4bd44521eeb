//! A host for tests and examples: it tells nobody of changes, and its resources have no children.

use super::{
    clock::Clock,
    health::Registry,
    host::Host,
    resource::{Moment, Resource, Retry},
    store::Store,
};
use contract::Fault;
use futures_util::future::LocalBoxFuture;
use std::any::Any;
use store::Change;

pub struct LoneHost {
    store: Store,
    clock: Clock,
    registry: Registry,
}

impl LoneHost {
    pub fn new(store: store::Store, clock: Clock) -> Self {
        LoneHost { store: store.into(), clock, registry: Registry::default() }
    }
}

impl Host for LoneHost {
    fn store(&self) -> &Store {
        &self.store
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn outgoing<R: Resource<Host = Self>>(
        &self,
        _: &Moment<R>,
        _: Option<&R::State>,
        _: &R::State,
    ) -> Result<Change, Fault> {
        Ok(Change::new())
    }

    fn has_outgoing(&self) {}

    fn delete_children<'a>(
        &'a self,
        _: &'a (dyn Any + Send + Sync),
    ) -> LocalBoxFuture<'a, Result<bool, Retry>> {
        Box::pin(async { Ok(true) })
    }
}
