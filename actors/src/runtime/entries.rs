//! The index entries that resources of many kinds have.

use super::resource::{Kept, Resource};
use contract::Timestamp;
use std::fmt;
use store::{Entries, Entry, Record};

/// Every resource with a pending intent: what is woken when the process starts. The spelling is
/// that of the first stores.
pub struct Pending;

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standing")
    }
}

impl<R: Resource> Entry<R> for Pending {}

/// Everything that ends at a moment. A record with a deadline is found by the sweeper.
pub struct Deadline(pub Timestamp);

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "due/{}", SortedMoment(self.0))
    }
}

impl<R: Record> Entry<R> for Deadline {}

/// A moment as text that sorts as moments do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortedMoment(pub Timestamp);

impl fmt::Display for SortedMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:013}", self.0.as_millis().max(0))
    }
}

/// Everything that hangs from a resource of the kind `P`. The table of kinds says which kinds do.
pub struct Under<P: Record>(pub P::Key);

impl<P: Record> fmt::Display for Under<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", P::TREE, self.0)
    }
}

/// The entries of a resource: its own, and those that the runtime looks for.
pub fn of<R: Resource>(kept: &Kept<R>) -> Entries<R> {
    <R as Resource>::index(&kept.state)
        .and_all(kept.intent.is_some().then_some(Pending))
        .and_all(R::deadline(&kept.state).map(|(at, _)| Deadline(at)))
}
