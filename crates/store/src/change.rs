//! The writes that one caller wants to happen together, or not at all.

use crate::{
    Lease, Merge, Record, Snapshot, StoreError, Stored, cache::Cached, keys, record::encode,
};
use std::sync::Arc;

/// Writes and preconditions that the store applies together, or not at all.
#[derive(Clone, Default)]
pub struct Change {
    pub(crate) writes: Vec<Write>,
    /// Why the change cannot be committed: JSON cannot hold one of its records.
    pub(crate) unwritable: Option<StoreError>,
}

/// One check or write of the committer.
#[derive(Clone)]
pub(crate) enum Write {
    /// The record must have this version. 0: there must be no such record.
    Expect { tree: &'static str, key: String, version: u64 },
    /// The unique value must be free, or held by this record.
    Claim { key: Vec<u8>, holder: String, claim: String },
    /// This process must hold the lease.
    Under(Lease),
    /// Sets or removes a record, also in the cache if its kind is cached.
    Record { tree: &'static str, key: String, value: Option<Vec<u8>>, cached: Option<Cached> },
    /// Sets or removes a row that does not enter the cache.
    Row { key: Vec<u8>, value: Option<Vec<u8>> },
    /// Computes the writes of a record and its index from the stored value.
    Merge { tree: &'static str, key: String, merge: MergeFn },
}

type MergeFn = Arc<dyn Fn(Option<&[u8]>) -> Result<Vec<Write>, StoreError> + Send + Sync>;

impl Change {
    /// A change without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the change has neither writes nor preconditions.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// About how many bytes it writes. A delta counts nothing: its record is not known yet.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |write: &Write| match write {
            Write::Record { value, .. } | Write::Row { value, .. } => {
                value.as_ref().map_or(0, Vec::len) as u64
            }
            Write::Expect { .. } | Write::Claim { .. } | Write::Under(_) | Write::Merge { .. } => 0,
        };
        self.writes.iter().map(bytes).sum()
    }

    /// The keys of the rows that it reads or writes, without index entries: those belong to one of the others.
    pub(crate) fn touches(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.writes.iter().filter_map(|write| match write {
            Write::Expect { tree, key, .. }
            | Write::Record { tree, key, .. }
            | Write::Merge { tree, key, .. } => Some(keys::record(tree, key)),
            Write::Claim { key, .. } => Some(key.clone()),
            Write::Under(_) => None,
            Write::Row { key, .. } => (!keys::is_of_index(key)).then(|| key.clone()),
        })
    }

    /// Writes a record. [`StoreError::Stale`] if there is one under the key.
    pub fn create<R: Record>(self, key: &R::Key, content: R::Content) -> Self {
        self.replace::<R>(key, None, content)
    }

    /// Writes a record and its index entries, but no claims, under a fresh key. Does not check that
    /// the key is free. The record is not cached, because such records are seldom read.
    pub fn append<R: Record>(mut self, key: &R::Key, content: &R::Content) -> Self {
        let key = key.to_string();
        for entry in R::index(content).0 {
            self.point(R::TREE, &entry, &key, true);
        }
        match encode::<R>(1, content) {
            Ok(value) => self.row(keys::record(R::TREE, &key), Some(value)),
            Err(e) => self.unwritable = Some(e),
        }
        self
    }

    /// Writes the successor of `before` and moves its index entries and claims.
    /// [`StoreError::Stale`] if the record is no longer `before`.
    pub fn replace<R: Record>(
        self,
        key: &R::Key,
        before: Option<&Stored<R>>,
        after: R::Content,
    ) -> Self {
        self.put(key, before, Arc::new(Stored::after(before, after)))
    }

    /// Like [`replace`](Change::replace), with a successor that the caller made with
    /// [`Stored::after`] from `before`, to share it with readers.
    pub fn put<R: Record>(
        mut self,
        key: &R::Key,
        before: Option<&Stored<R>>,
        after: Snapshot<R>,
    ) -> Self {
        let key = key.to_string();
        self.expect::<R>(&key, before.map_or(0, Stored::version));
        self.set::<R>(&key, before.map(|before| &**before), after);
        self
    }

    /// Removes a record with its index entries and claims. [`StoreError::Stale`] if the record is
    /// no longer `before`.
    pub fn remove<R: Record>(mut self, key: &R::Key, before: &Stored<R>) -> Self {
        let key = key.to_string();
        self.expect::<R>(&key, before.version());
        self.forget::<R>(&key, before);
        self
    }

    /// Writes the index entries of a record again. For records that an earlier version of the program
    /// wrote, which knew fewer entries. [`StoreError::Stale`] if the record is no longer `seen`.
    pub fn index_again<R: Record>(mut self, key: &R::Key, seen: &Stored<R>) -> Self {
        let key = key.to_string();
        self.expect::<R>(&key, seen.version());
        for entry in R::index(seen).0 {
            self.point(R::TREE, &entry, &key, true);
        }
        self
    }

    /// Requires that this record is still `seen`, else [`StoreError::Stale`]. Does not write it.
    pub fn require<R: Record>(mut self, key: &R::Key, seen: &Stored<R>) -> Self {
        self.expect::<R>(&key.to_string(), seen.version());
        self
    }

    /// Requires that there is no such record, else [`StoreError::Stale`].
    pub fn require_absent<R: Record>(mut self, key: &R::Key) -> Self {
        self.expect::<R>(&key.to_string(), 0);
        self
    }

    /// Requires that this process still holds the lease, else [`StoreError::NotHeld`]. For what follows from an
    /// act that only the holder may perform.
    pub fn under(mut self, lease: Lease) -> Self {
        if lease.is_shared() {
            self.writes.push(Write::Under(lease));
        }
        self
    }

    /// Removes a record by its key, without reading it. Only for kinds without index entries and
    /// claims.
    pub fn drop_row<R: Record>(mut self, key: &R::Key) -> Self {
        self.record::<R>(&key.to_string(), None);
        self
    }

    /// Applies a delta to a record that several writers share. A change holds at most one delta for
    /// each record.
    pub fn merge<R: Merge>(mut self, key: &R::Key, delta: R::Delta) -> Self {
        let key = key.to_string();
        let owned = key.clone();
        let merge: MergeFn = Arc::new(move |bytes| {
            let before = bytes.map(|b| Stored::<R>::decode(&owned, b)).transpose()?;
            if let Some(why) = R::refuses(before.as_deref(), &delta) {
                return Err(StoreError::Refused(why));
            }
            let mut change = Change::default();
            match R::merge(before.as_deref().cloned(), &delta) {
                Some(content) => {
                    let after = Arc::new(Stored::after(before.as_ref(), content));
                    change.set::<R>(&owned, before.as_deref(), after);
                }
                None => match &before {
                    Some(before) => change.forget::<R>(&owned, before),
                    None => change.record::<R>(&owned, None),
                },
            }
            change.unwritable.map_or(Ok(change.writes), Err)
        });
        self.writes.push(Write::Merge { tree: R::TREE, key, merge });
        self
    }

    /// Adds all writes and preconditions of another change.
    pub fn and(mut self, other: Change) -> Self {
        self.writes.extend(other.writes);
        self.unwritable = self.unwritable.or(other.unwritable);
        self
    }

    fn set<R: Record>(&mut self, key: &str, before: Option<&R::Content>, after: Snapshot<R>) {
        let old_index = before.map(R::index).unwrap_or_default().0;
        let new_index = R::index(&after).0;
        for gone in old_index.iter().filter(|e| !new_index.contains(e)) {
            self.point(R::TREE, gone, key, false);
        }
        for new in new_index.iter().filter(|e| !old_index.contains(e)) {
            self.point(R::TREE, new, key, true);
        }
        let old_claims = before.map(R::claims).unwrap_or_default().0;
        let new_claims = R::claims(&after).0;
        for gone in old_claims.iter().filter(|c| !new_claims.contains(c)) {
            self.row(keys::claim(R::TREE, gone), None);
        }
        for new in new_claims.into_iter().filter(|c| !old_claims.contains(c)) {
            self.writes.push(Write::Claim {
                key: keys::claim(R::TREE, &new),
                holder: key.to_owned(),
                claim: new,
            });
        }
        match after.encode() {
            Ok(value) => self.record::<R>(key, Some((value, after))),
            Err(e) => self.unwritable = Some(e),
        }
    }

    fn forget<R: Record>(&mut self, key: &str, content: &R::Content) {
        for entry in R::index(content).0 {
            self.point(R::TREE, &entry, key, false);
        }
        for claim in R::claims(content).0 {
            self.row(keys::claim(R::TREE, &claim), None);
        }
        self.record::<R>(key, None);
    }

    fn expect<R: Record>(&mut self, key: &str, version: u64) {
        self.writes.push(Write::Expect { tree: R::TREE, key: key.to_owned(), version });
    }

    fn record<R: Record>(&mut self, key: &str, after: Option<(Vec<u8>, Snapshot<R>)>) {
        let cached = after
            .as_ref()
            .filter(|_| R::CACHED)
            .map(|(value, stored)| Cached { record: stored.clone(), bytes: value.len() });
        let value = after.map(|(value, _)| value);
        self.writes.push(Write::Record { tree: R::TREE, key: key.to_owned(), value, cached });
    }

    fn point(&mut self, tree: &'static str, entry: &str, key: &str, there: bool) {
        self.row(keys::entry(tree, entry, key), there.then(Vec::new));
    }

    fn row(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.writes.push(Write::Row { key, value });
    }
}
