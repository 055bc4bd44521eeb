//! Index entries for records that an earlier version of the program wrote, which knew fewer entries.

use super::{
    resource::Resource,
    side_record::{End, SideRecord},
    store::Store,
};
use contract::Fault;
use serde::{Deserialize, Serialize};
use store::Change;

/// The version of the index entries of a kind. The key is the name of the kind in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexVersion(pub u16);

impl SideRecord for IndexVersion {
    fn end(&self) -> End {
        End::Never
    }
}

/// Writes the index entries of all resources of a kind again, unless the store has them. A repetition
/// after a crash begins again.
pub(crate) async fn reindex<R: Resource>(store: &Store) -> Result<(), Fault> {
    if R::INDEX == 1 {
        return Ok(());
    }
    let kind = R::TREE.to_owned();
    let known = store.get::<IndexVersion>(&kind)?;
    if known.as_ref().is_some_and(|known| known.0 >= R::INDEX) {
        return Ok(());
    }
    let mut list = store.whole::<R>(None);
    while let Some(page) = list.next_keys().await? {
        let mut change = Change::new();
        for key in page {
            // A record that cannot be read is in the log, and must not keep the service from starting.
            if let Ok(Some(seen)) = store.get::<R>(&key) {
                change = change.index_again::<R>(&key, &seen);
            }
        }
        store.commit(change).await?;
    }
    let version = IndexVersion(R::INDEX);
    store.commit(Change::new().replace::<IndexVersion>(&kind, known.as_deref(), version)).await
}
