//! Deleting what hangs from something: each child is asked to go, a batch at a time, until none is
//! left. Asking twice does no harm, so a crash between any two of them costs nothing.

use super::{
    handle::Handle,
    resource::{Kept, Resource, Retry},
};
use crate::world::World;

/// Resources asked to go at a time.
const BATCH: usize = 100;

/// Asks those that carry the index entry to go; how many there were.
pub(crate) async fn ask_to_go<R: Resource>(
    world: &World,
    entry: &str,
    owners: &Handle<R>,
    command: R::Command,
) -> Result<usize, Retry> {
    let found = world.store.newest::<Kept<R>>(entry, None, BATCH)?;
    for id in found.iter().filter_map(|key| key.parse::<R::Id>().ok()) {
        owners.ask_if_there(id, command.clone()).await?;
    }
    Ok(found.len())
}
