//! The index entries that many kinds share.

use super::resource::{HasParent, Kept, Resource};
use contract::{Timestamp, retention::Retention};
use serde::Serialize;
use std::fmt;
use store::{Entries, Entry, Record};

/// Resources that are not idle. Their owners are woken when the process starts. The spelling
/// `standing` is the one that existing stores have.
pub struct Pending;

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standing")
    }
}

impl<R: Resource> Entry<R> for Pending {}

/// Records with a deadline. The sweeper finds them by this entry.
pub struct Deadline(pub Timestamp);

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "due/{}", SortedMoment(self.0))
    }
}

impl<R: Record> Entry<R> for Deadline {}

/// Resources of which something has ended that a retention keeps, by the time of the end.
pub struct Retained(pub Retention, pub Timestamp);

impl fmt::Display for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retained/{}/{}", self.0.name(), SortedMoment(self.1))
    }
}

impl<R: Resource> Entry<R> for Retained {}

/// A timestamp as text that sorts by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortedMoment(pub Timestamp);

impl fmt::Display for SortedMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:013}", self.0.as_millis().max(0))
    }
}

/// Resources that belong to a resource of the kind `P`. The table of kinds declares their kinds:
/// those `under` the kind `P` are its children, those `beside` it are not.
pub struct Under<P: Record>(pub P::Key);

impl<P: Record> fmt::Display for Under<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", P::TREE, self.0)
    }
}

/// Resources that belong to a resource of the kind `P` and are in one state. Lists of one state read
/// no others.
pub struct InState<P: Record> {
    parent: P::Key,
    state: String,
}

impl<P: Record> InState<P> {
    pub fn new(parent: P::Key, state: impl Serialize) -> Self {
        InState { parent, state: wire_name(state) }
    }
}

/// The name of a state on the wire, such as `timedOut`.
pub fn wire_name(state: impl Serialize) -> String {
    let name = serde_json::to_value(state).ok();
    name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

impl<P: Record> fmt::Display for InState<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state/{}/{}/{}", P::TREE, self.parent, self.state)
    }
}

impl<R: HasParent> Entry<R> for InState<R::Parent> {}

/// When the sweeper tells the owner that its work begins, unless the owner has begun or waits itself, or
/// that it is over.
pub fn due<R: Resource>(kept: &Kept<R>) -> Option<Timestamp> {
    let work = kept.work()?;
    let begins = work.effect.filter(|_| !kept.awake);
    // Work that begins at once has no owner yet in a record of an earlier version.
    let begins = begins.map(|_| work.at.unwrap_or(Timestamp::from_millis(0)));
    begins.into_iter().chain(work.until).min()
}

/// The index entries of a resource: its own, and those that the runtime uses.
pub fn of<R: Resource>(kept: &Kept<R>) -> Entries<R> {
    <R as Resource>::index(&kept.state)
        .and_all(kept.task().map(|_| Pending))
        .and_all(due(kept).map(Deadline))
        .and_all(kept.retained().into_iter().map(|(retention, since)| Retained(retention, since)))
}
