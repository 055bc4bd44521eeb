//! The store as the platform uses it. Errors become a [`Fault`] in one place.

use super::resource::Resource;
use contract::Fault;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use store::{Change, Claim, Entry, Lease, Merge, Others, Record, Snapshot, StoreError};

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

    /// The records that carry the index entry, newest first, after a cursor.
    pub fn newest<R: Record>(&self, entry: &impl Entry<R>, after: Option<&R::Key>) -> List<'_, R> {
        List::new(self, self.inner.newest::<R>(entry, after))
    }

    /// The records that carry the index entry, oldest first, after a cursor.
    pub fn oldest<R: Record>(&self, entry: &impl Entry<R>, after: Option<&R::Key>) -> List<'_, R> {
        List::new(self, self.inner.oldest::<R>(entry, after))
    }

    /// The records whose index entry has the same name as `entry` and sorts before it, in order.
    pub fn before<R: Record>(&self, entry: &impl Entry<R>) -> List<'_, R> {
        List::new(self, self.inner.before::<R>(entry))
    }

    /// All records of a kind, the greatest key first, after a cursor.
    pub fn whole<R: Record>(&self, after: Option<&R::Key>) -> List<'_, R> {
        List::new(self, self.inner.whole::<R>(after))
    }

    /// All records of a kind, the smallest key first.
    pub fn from_first<R: Record>(&self) -> List<'_, R> {
        List::new(self, self.inner.from_first::<R>())
    }

    /// How many records carry the index entry. It reads all of them at once, so they must be few:
    /// [`count_all`](Store::count_all) counts many.
    pub fn count<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, Fault> {
        self.inner.count::<R>(entry).map_err(|e| refused(R::TREE, &e))
    }

    /// Like [`count`](Store::count), for entries that many records may carry.
    pub async fn count_all<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, Fault> {
        let (mut count, mut list) = (0, self.oldest::<R>(entry, None));
        while let Some(keys) = list.next_keys().await? {
            count += keys.len() as u64;
        }
        Ok(count)
    }

    /// How many different index entries have the name of `entry`, which is `entry` without its last part,
    /// counted up to `most`. However many records carry them, it reads one row for each entry.
    pub fn count_different<R: Record>(
        &self,
        entry: &impl Entry<R>,
        most: usize,
    ) -> Result<usize, Fault> {
        self.inner.count_different::<R>(entry, most).map_err(|e| refused(R::TREE, &e))
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
        let (mut change, mut is_empty) = (Change::new(), true);
        for found in self.oldest::<R>(entry, None).take(most) {
            let (key, record) = found?;
            (change, is_empty) = (change.remove::<R>(&key, &record), false);
        }
        self.commit(change).await?;
        Ok(is_empty)
    }

    /// Returns when readers see every change that was acknowledged before this call.
    pub async fn fence(&self) -> Result<(), Fault> {
        self.inner.fence().await.map_err(|e| refused("fence", &e))
    }

    /// Like [`fence`](Store::fence), for what only other processes may have changed: does nothing where this one is
    /// alone.
    pub async fn catch_up(&self) -> Result<(), Fault> {
        if self.is_alone() { Ok(()) } else { self.fence().await }
    }

    /// The lease under which this process acts for a record. `None`: another process acts for it now.
    pub fn lease<R: Record>(&self, key: &R::Key) -> Option<Lease> {
        self.inner.lease(key)
    }

    /// Whether no other process may share the store.
    pub fn is_alone(&self) -> bool {
        self.inner.is_alone()
    }

    /// The leases that other processes may get, and this one holds.
    pub fn leases(&self) -> Vec<Lease> {
        self.inner.leases()
    }

    /// Whether this process does the work of this name, which one process alone does.
    pub fn does(&self, work: &'static str) -> bool {
        self.inner.lease(work).is_some()
    }

    /// Whether this process still holds this lease, in this epoch.
    pub fn has(&self, lease: Lease) -> bool {
        self.inner.has(lease)
    }

    /// Tells from now on what other processes that share the store did.
    pub fn others(&self) -> Others {
        self.inner.others()
    }

    /// Returns when everything that readers can see at the call is on the disk.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.commit(Change::new()).await
    }

    /// Writes without waiting. The change is durable a moment later, or lost with the process.
    pub fn note(&self, change: Change) {
        self.inner.note(change);
    }

    /// Like [`note`](Store::note), but waits where another process may look for the change at once.
    pub async fn note_for_others(&self, change: Change) {
        if self.is_alone() {
            return self.note(change);
        }
        if let Err(e) = self.commit(change).await {
            tracing::warn!(error = %e, "other nodes do not see the reply to a call");
        }
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

/// Records with their keys, read a page at a time while the list is walked. See [`store::List`] for what
/// happens to what others write meanwhile.
///
/// Whoever walks a list that may be long takes some of it, or walks it with
/// [`next_keys`](List::next_keys): the thread answers no other call meanwhile.
pub struct List<'a, R: Record> {
    store: &'a Store,
    inner: store::List<'a, R>,
}

impl<'a, R: Record> List<'a, R> {
    fn new(store: &'a Store, inner: store::List<'a, R>) -> Self {
        List { store, inner }
    }

    /// The keys of the list, without their records.
    pub fn keys(self) -> impl Iterator<Item = Result<R::Key, Fault>> + use<'a, R> {
        self.inner.keys().map(|key| key.map_err(|e| refused(R::TREE, &e)))
    }

    /// How many keys the list has, counted up to `most`.
    pub fn count_up_to(self, most: usize) -> Result<usize, Fault> {
        self.keys().take(most).try_fold(0, |count, key| key.map(|_| count + 1))
    }

    /// The next keys of a long list. `None`: there are no more. Others get their turn before each page, so
    /// the walk holds nobody up.
    pub async fn next_keys(&mut self) -> Result<Option<Vec<R::Key>>, Fault> {
        tokio::task::yield_now().await;
        let page = self.inner.page().map_err(|e| refused(R::TREE, &e))?;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

impl<R: Record> Iterator for List<'_, R> {
    type Item = Result<Keyed<R>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.inner.next()?;
        self.store.reads.fetch_add(1, Relaxed);
        Some(found.map_err(|e| refused(R::TREE, &e)))
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
        StoreError::Refused(why) => Fault::OverQuota(why.clone()),
        StoreError::Busy(_) | StoreError::NotHeld => Fault::Busy,
        StoreError::NoRoom => Fault::NoRoom,
        StoreError::Unreachable(_) => Fault::Unavailable("the database"),
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

    #[derive(Default, Serialize, Deserialize)]
    struct Leaf {
        twigs: Vec<(String, String)>,
    }

    impl Record for Leaf {
        const TREE: &'static str = "leaf";
        const SCHEMA: u16 = 1;
        type Key = String;
        type Content = Self;

        fn index(leaf: &Self) -> Entries<Self> {
            let twigs = leaf.twigs.iter().map(|(branch, twig)| LeafIndex::Twig {
                branch: branch.clone(),
                twig: twig.clone(),
            });
            Entries::default().and(LeafIndex::All).and_all(twigs)
        }
    }

    store::entries! {
        pub enum LeafIndex of Leaf {
            All = "all",
            Twig { branch: String, twig: String } = "twig",
        }
    }

    /// A store with these leaves.
    fn store_of(folder: &tempfile::TempDir, leaves: impl Iterator<Item = Leaf>) -> Store {
        let opened = store::Store::open(folder.path(), &["leaf"], Memory::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let change = leaves.enumerate().fold(Change::new(), |change, (n, leaf)| {
            change.create::<Leaf>(&format!("{n:05}"), leaf)
        });
        runtime.block_on(opened.commit(change)).unwrap();
        Store::from(opened)
    }

    #[test]
    fn different_entries_are_counted_once_however_many_records_carry_them() {
        let folder = tempfile::tempdir().unwrap();
        // The texts sort in another way than the rows: a slash follows each of them there.
        let twigs = ["a", "a-1", "a.1", "a0", "a00", "b"];
        let leaf = |branch: &str, twig: &str| Leaf { twigs: vec![(branch.into(), twig.into())] };
        let leaves = twigs.iter().flat_map(|twig| [leaf("x", twig), leaf("x", twig)]);
        let store = store_of(&folder, leaves.chain([leaf("x1", "c"), leaf("w", "a")]));

        let count = |branch: &str, most| {
            let entry = LeafIndex::Twig { branch: branch.into(), twig: "any".into() };
            store.count_different::<Leaf>(&entry, most).unwrap()
        };
        assert_eq!((count("x", 10), count("x", 4)), (6, 4));
        assert_eq!((count("x1", 10), count("w", 10), count("y", 10)), (1, 1, 0));
        store.raw().close();
    }

    #[test]
    fn others_get_their_turn_while_many_are_counted() {
        let many = 2_500;
        let folder = tempfile::tempdir().unwrap();
        let store = store_of(&folder, (0..many).map(|_| Leaf::default()));

        let mut counting = Box::pin(store.count_all::<Leaf>(&LeafIndex::All));
        let mut turns = 0;
        let counted = loop {
            match counting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(counted) => break counted,
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(counted, Ok(many));
        assert!(turns >= 4, "{turns} turns of others");
        drop(counting);
        store.raw().close();
    }
}
