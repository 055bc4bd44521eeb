//! The store as the platform uses it. Errors become a [`Fault`] in one place.

use super::resource::Resource;
use contract::Fault;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use store::{Change, Claim, Entry, Merge, Record, Snapshot, StoreError};

/// How many keys of a walk over many records are read at once.
const PAGE: usize = 1_000;

/// A record with its key.
pub type Keyed<R> = (<R as Record>::Key, Snapshot<R>);

/// An open store. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: store::Store,
    reads: Arc<AtomicU64>,
}

impl From<store::Store> for Store {
    fn from(inner: store::Store) -> Self {
        Store { inner, reads: Arc::default() }
    }
}

impl Store {
    pub fn get<R: Record>(&self, key: &R::Key) -> Result<Option<Snapshot<R>>, Fault> {
        self.reads.fetch_add(1, Relaxed);
        self.inner.get::<R>(key).map_err(|e| refused(R::TREE, &e))
    }

    /// Reads a record that several writers add to. A missing record reads as an empty one.
    pub fn get_or_empty<R: Record<Content: Default>>(
        &self,
        key: &R::Key,
    ) -> Result<Snapshot<R>, Fault> {
        let empty = || Snapshot::new(store::Stored::unwritten(R::Content::default()));
        Ok(self.get::<R>(key)?.unwrap_or_else(empty))
    }

    /// Keys that carry the index entry, newest first, after a cursor.
    pub fn newest<R: Record>(
        &self,
        entry: &impl Entry<R>,
        after: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, Fault> {
        self.inner.newest::<R>(entry, after, limit).map_err(|e| refused(R::TREE, &e))
    }

    /// Keys that carry the index entry, oldest first, after a cursor.
    pub fn oldest<R: Record>(
        &self,
        entry: &impl Entry<R>,
        after: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, Fault> {
        self.inner.oldest::<R>(entry, after, limit).map_err(|e| refused(R::TREE, &e))
    }

    /// All keys that carry the index entry, newest first.
    pub fn all<R: Record>(&self, entry: &impl Entry<R>) -> Result<Vec<R::Key>, Fault> {
        self.newest::<R>(entry, None, usize::MAX)
    }

    /// Keys whose index entry has the same name as `entry` and sorts before it, in order.
    pub fn before<R: Record>(
        &self,
        entry: &impl Entry<R>,
        limit: usize,
    ) -> Result<Vec<R::Key>, Fault> {
        self.inner.before::<R>(entry, limit).map_err(|e| refused(R::TREE, &e))
    }

    /// How many records carry the index entry. It reads all of them at once, so they must be few:
    /// [`count_all`](Store::count_all) counts many.
    pub fn count<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, Fault> {
        self.inner.count::<R>(entry).map_err(|e| refused(R::TREE, &e))
    }

    /// The next keys that carry the index entry, oldest first, after a cursor that moves on with them.
    /// `None`: there are no more. Others get their turn before each page, so a walk over many records
    /// holds nobody up.
    pub async fn next_page<R: Record>(
        &self,
        entry: &impl Entry<R>,
        after: &mut Option<R::Key>,
    ) -> Result<Option<Vec<R::Key>>, Fault> {
        tokio::task::yield_now().await;
        let page = self.oldest::<R>(entry, after.as_ref(), PAGE)?;
        let Some(last) = page.last() else { return Ok(None) };
        *after = Some(last.clone());
        Ok(Some(page))
    }

    /// Like [`count`](Store::count), for entries that many records may carry.
    pub async fn count_all<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, Fault> {
        let (mut count, mut after) = (0, None);
        while let Some(page) = self.next_page::<R>(entry, &mut after).await? {
            count += page.len() as u64;
        }
        Ok(count)
    }

    /// The key of the record that holds a unique value.
    pub fn holder<R: Record>(&self, claim: &impl Claim<R>) -> Result<Option<R::Key>, Fault> {
        self.inner.holder::<R>(claim).map_err(|e| refused(R::TREE, &e))
    }

    /// The record that holds a unique value.
    pub fn held_by<R: Record>(&self, claim: &impl Claim<R>) -> Result<Option<Keyed<R>>, Fault> {
        let Some(key) = self.holder::<R>(claim)? else { return Ok(None) };
        Ok(self.get::<R>(&key)?.map(|found| (key, found)))
    }

    /// Keys of a kind in descending order, before a cursor.
    pub fn keys<R: Record>(
        &self,
        before: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, Fault> {
        self.inner.keys::<R>(before, limit).map_err(|e| refused(R::TREE, &e))
    }

    /// Returns when the change is on the disk or was refused.
    pub async fn commit(&self, change: Change) -> Result<(), Fault> {
        self.try_commit(change).await.map_err(|e| refused("change", &e))
    }

    /// Like [`commit`](Store::commit), with the error of the store.
    pub async fn try_commit(&self, change: Change) -> Result<(), StoreError> {
        self.inner.commit(change).await
    }

    /// Removes the oldest records with an index entry, at most this many. Returns whether none was
    /// left.
    pub async fn remove_oldest<R: Record<Content = R>>(
        &self,
        entry: &impl Entry<R>,
        most: usize,
    ) -> Result<bool, Fault> {
        let keys = self.oldest::<R>(entry, None, most)?;
        let mut change = Change::new();
        for key in &keys {
            if let Some(record) = self.get::<R>(key)? {
                change = change.remove::<R>(key, &record);
            }
        }
        self.commit(change).await?;
        Ok(keys.is_empty())
    }

    /// Returns when readers see every change that was acknowledged before this call.
    pub async fn fence(&self) -> Result<(), Fault> {
        self.inner.fence().await.map_err(|e| refused("fence", &e))
    }

    /// Returns when everything that readers can see at the call is on the disk.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.commit(Change::new()).await
    }

    /// Writes without waiting. The change is durable a moment later, or lost with the process.
    pub fn note(&self, change: Change) {
        self.inner.note(change);
    }

    /// Adds to a record that several writers share, without waiting.
    pub fn note_merge<R: Merge>(&self, key: &R::Key, delta: R::Delta) {
        self.note(Change::new().merge::<R>(key, delta));
    }

    /// How many records were read since the start, from memory or from the disk.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// The underlying store, for its metrics, its dump and its close.
    pub fn raw(&self) -> &store::Store {
        &self.inner
    }
}

/// Reads a resource; [`Fault::NotFound`] if there is none.
pub fn get<R: Resource>(store: &Store, id: R::Key) -> Result<Snapshot<R>, Fault> {
    store.get::<R>(&id)?.ok_or(Fault::NotFound(R::NOUN))
}

/// The fault for a caller whose read or change was refused.
pub(crate) fn refused(what: &str, e: &StoreError) -> Fault {
    match e {
        StoreError::Stale { .. } | StoreError::Taken { .. } => Fault::Stale,
        StoreError::Busy(_) => Fault::Busy,
        StoreError::NoRoom => Fault::NoRoom,
        StoreError::Unreadable(_)
        | StoreError::Unwritable(_)
        | StoreError::InUse(_)
        | StoreError::Damaged(_) => {
            tracing::error!(what, error = %e, "a record cannot be read or written");
            Fault::Internal
        }
        StoreError::Io(_) => {
            tracing::error!(what, error = %e, "a change was not confirmed by the disk");
            Fault::Uncertain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::task::{Context, Poll, Waker};
    use store::{Entries, Memory};

    #[derive(Serialize, Deserialize)]
    struct Leaf;

    impl Record for Leaf {
        const TREE: &'static str = "leaf";
        const SCHEMA: u16 = 1;
        type Key = String;
        type Content = Self;

        fn index(_: &Self) -> Entries<Self> {
            Entries::default().and(LeafIndex::All)
        }
    }

    store::entries! {
        pub enum LeafIndex of Leaf {
            All = "all",
        }
    }

    #[test]
    fn others_get_their_turn_while_many_are_counted() {
        let many = 2 * PAGE + 500;
        let folder = tempfile::tempdir().unwrap();
        let opened = store::Store::open(folder.path(), &["leaf"], Memory::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let leaves = (0..many).map(|n| format!("{n:05}"));
        let change = leaves.fold(Change::new(), |change, key| change.create::<Leaf>(&key, Leaf));
        runtime.block_on(opened.commit(change)).unwrap();
        let store = Store::from(opened);

        let mut counting = Box::pin(store.count_all::<Leaf>(&LeafIndex::All));
        let mut turns = 0;
        let counted = loop {
            match counting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(counted) => break counted,
                Poll::Pending => turns += 1,
            }
        };
        // One before each page, and one before the empty page at the end.
        assert_eq!((counted, turns), (Ok(many as u64), 4));
        drop(counting);
        store.raw().close();
    }
}
