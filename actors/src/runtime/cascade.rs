//! Deleting what hangs from something: each child is asked to go, some at a time, until none is
//! left. Asking twice does no harm, so a crash between any two of them costs nothing.

use super::{
    handle::Handle,
    resource::{Child, Retry},
    store::Store,
};
use store::Entry;

/// Resources asked to go at a time.
const SOME: usize = 100;

/// Asks some of those that carry the index entry to go; how many there were.
pub(crate) async fn delete_some<R: Child>(
    store: &Store,
    entry: &impl Entry<R>,
    owners: &Handle<R>,
) -> Result<usize, Retry> {
    let found = store.newest::<R>(entry, None, SOME)?;
    for id in &found {
        owners.ask_if_there(*id, R::delete()).await?;
    }
    Ok(found.len())
}
