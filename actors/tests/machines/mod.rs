//! The state machines of artifacts and releases alone: the tests reach many states by random and
//! exhaustive inputs, and check the invariants in each of them.

mod artifacts;
mod releases;

use actors::runtime::resource::{Input, Kept, Moment, Resource, step};
use contract::{Fault, Id, Timestamp};
use ulid::Ulid;

/// A resource in the memory of its owner, without a store.
pub struct World<R: Resource> {
    pub at: Moment<R>,
    pub kept: Option<Kept<R>>,
}

impl<R: Resource> World<R> {
    pub fn new(state: R::State) -> Self {
        let at = Moment { id: R::Key::of(Ulid(7)), now: Timestamp::from_millis(1_000) };
        World { at, kept: Some(Kept::at_rest(state)) }
    }

    /// Applies a step as the owner does.
    pub fn take(&mut self, input: Input<R>) -> Result<(), Fault> {
        let kept = self.kept.as_ref();
        let step = step(&self.at, kept, input)?;
        self.kept = step.apply(kept)?;
        Ok(())
    }
}
