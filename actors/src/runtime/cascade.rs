//! Deletes the children of a resource, one batch at a time, until none is left. A second deletion
//! of a child does no harm, so a crash in between costs nothing.

use super::{
    handle::Handle,
    resource::{Child, Retry},
    store::Store,
};
use contract::Fault;
use std::time::Duration;
use store::Entry;

/// How many resources one batch deletes.
const SOME: usize = 100;

/// The pause after a batch, for those that cannot be gone at once.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Deletes one batch of the resources with this index entry. Returns how many there were.
pub(crate) async fn delete_some<R: Child>(
    store: &Store,
    entry: &impl Entry<R>,
    owners: &Handle<R>,
    command: impl Fn() -> Result<R::Command, Fault>,
) -> Result<usize, Retry> {
    let found = store.newest::<R>(entry, None, SOME)?;
    for id in &found {
        owners.ask_if_there(*id, command()?).await?;
    }
    Ok(found.len())
}
