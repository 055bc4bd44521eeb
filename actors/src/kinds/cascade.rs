//! Deletes the children of a resource, one batch at a time, until none is left. A second deletion
//! of a child does no harm, so a crash in between costs nothing.

use super::{table::Owned, world::World};
use crate::runtime::resource::{Child, Retry};
use contract::Fault;
use std::time::Duration;
use store::Entry;

/// How many resources one batch deletes.
const SOME: usize = 100;

/// The pause after a batch, for those that cannot be gone at once.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Deletes one batch of the resources with this index entry. Returns how many there were.
pub(super) async fn delete_some<R: Owned + Child>(
    world: &World,
    entry: &impl Entry<R>,
    command: impl Fn() -> Result<R::Command, Fault>,
) -> Result<usize, Retry> {
    let mut deleted = 0;
    for id in world.store.newest::<R>(entry, None).keys().take(SOME) {
        world.to::<R>(id?).ask_if_there(command()?).await?;
        deleted += 1;
    }
    Ok(deleted)
}
