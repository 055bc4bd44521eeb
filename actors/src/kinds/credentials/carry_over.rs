//! Carries over credentials of earlier versions, which had no index entry for their expiry.

use super::{CredentialIndex, Credentials};
use crate::world::World;
use contract::Fault;
use std::collections::HashSet;
use store::Change;

/// Gives each credential that expires soon the index entry that leads to it.
pub(crate) async fn carry_over(world: &World) -> Result<(), Fault> {
    let store = &world.store;
    let listed = store.all::<Credentials>(&CredentialIndex::Expiring)?;
    let listed: HashSet<_> = listed.into_iter().collect();
    let mut change = Change::new();
    for id in store.keys::<Credentials>(None, usize::MAX)? {
        let seen = store.get::<Credentials>(&id)?.filter(|seen| seen.warned.is_some());
        if let Some(seen) = seen.filter(|_| !listed.contains(&id)) {
            change = change.index_again::<Credentials>(&id, &seen);
        }
    }
    if change.is_empty() { Ok(()) } else { store.commit(change).await }
}
