//! What one writer wants to become true: all of it or nothing.

use crate::{CLAIMS, INDEX, Merge, Record, StoreError, Stored, keys, record::version_of};
use std::{any::Any, sync::Arc};

/// A decoded record, its kind known to who asks for it.
pub(crate) type Cached = Arc<dyn Any + Send + Sync>;

/// A set of writes that happen together. Plain data until it is committed.
#[derive(Default)]
pub struct Change {
    pub(crate) writes: Vec<Write>,
    /// Why it cannot be committed: a record that JSON cannot hold.
    pub(crate) unwritable: Option<StoreError>,
}

/// What a write sees and does in the committer's transaction.
pub(crate) enum Write {
    /// The record must be at this version; 0: must not be there.
    Expect { tree: &'static str, key: String, version: u64 },
    /// The unique value must be free, or this record's own.
    Claim { key: Vec<u8>, holder: String, claim: String },
    /// Sets or removes a row.
    Row { tree: &'static str, key: Vec<u8>, value: Option<Vec<u8>>, cached: Option<Cached> },
    /// Computes a row and its index from what is stored.
    Merge { tree: &'static str, key: String, merge: MergeFn },
}

type MergeFn = Box<dyn Fn(Option<&[u8]>) -> Result<Vec<Write>, StoreError> + Send>;

impl Change {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Writes a record that must not be there yet.
    pub fn create<R: Record + Clone>(self, key: &str, record: &R) -> Self {
        self.replace(key, None, record)
    }

    /// Writes the successor of `before` as it was read, and moves its index entries and claims.
    pub fn replace<R: Record + Clone>(
        mut self,
        key: &str,
        before: Option<&Stored<R>>,
        after: &R,
    ) -> Self {
        let seen = before.map_or(0, |b| b.version);
        self.writes.push(Write::Expect { tree: R::TREE, key: key.to_owned(), version: seen });
        self.set(key, before.map(|b| &b.record), seen + 1, after);
        self
    }

    /// Removes a record as it was read, with its index entries and claims.
    pub fn remove<R: Record>(mut self, key: &str, before: &Stored<R>) -> Self {
        self.writes.push(Write::Expect {
            tree: R::TREE,
            key: key.to_owned(),
            version: before.version,
        });
        self.forget(key, &before.record);
        self.writes.push(Write::Row { tree: R::TREE, key: key.into(), value: None, cached: None });
        self
    }

    /// Holds only while this record is as it was read. It is not written.
    pub fn require<R: Record>(mut self, key: &str, seen: &Stored<R>) -> Self {
        self.writes.push(Write::Expect {
            tree: R::TREE,
            key: key.to_owned(),
            version: seen.version,
        });
        self
    }

    /// Holds only while there is no such record.
    pub fn require_absent<R: Record>(mut self, key: &str) -> Self {
        self.writes.push(Write::Expect { tree: R::TREE, key: key.to_owned(), version: 0 });
        self
    }

    /// Removes a record that only its key is known of, and which has neither index nor claims.
    pub fn drop_row<R: Record>(mut self, key: &str) -> Self {
        self.writes.push(Write::Row { tree: R::TREE, key: key.into(), value: None, cached: None });
        self
    }

    /// Adds to a record that several writers share. One delta for each record in a change.
    pub fn merge<R: Merge + Clone>(mut self, key: &str, delta: R::Delta) -> Self {
        let owned = key.to_owned();
        let merge: MergeFn = Box::new(move |bytes| {
            let old = bytes.map(|b| Stored::<R>::decode(&owned, b)).transpose()?;
            let version = version_of(bytes);
            let mut change = Change::default();
            let before = old.as_ref().map(|o| o.record.clone());
            match R::merge(old.map(|o| o.record), &delta) {
                Some(after) => change.set(&owned, before.as_ref(), version + 1, &after),
                None => {
                    if let Some(before) = &before {
                        change.forget(&owned, before);
                    }
                    change.writes.push(Write::Row {
                        tree: R::TREE,
                        key: owned.as_str().into(),
                        value: None,
                        cached: None,
                    });
                }
            }
            change.unwritable.map_or(Ok(change.writes), Err)
        });
        self.writes.push(Write::Merge { tree: R::TREE, key: key.to_owned(), merge });
        self
    }

    /// Adds all of another change.
    pub fn and(mut self, other: Change) -> Self {
        self.writes.extend(other.writes);
        self.unwritable = self.unwritable.or(other.unwritable);
        self
    }

    fn set<R: Record + Clone>(&mut self, key: &str, before: Option<&R>, version: u64, after: &R) {
        let (old_index, new_index) = (before.map(Record::index).unwrap_or_default(), after.index());
        for gone in old_index.iter().filter(|e| !new_index.contains(e)) {
            self.point(R::TREE, gone, key, false);
        }
        for new in new_index.iter().filter(|e| !old_index.contains(e)) {
            self.point(R::TREE, new, key, true);
        }
        let (old_claims, new_claims) =
            (before.map(Record::claims).unwrap_or_default(), after.claims());
        for gone in old_claims.iter().filter(|c| !new_claims.contains(c)) {
            self.writes.push(Write::Row {
                tree: CLAIMS,
                key: keys::claim(R::TREE, gone),
                value: None,
                cached: None,
            });
        }
        for new in new_claims.into_iter().filter(|c| !old_claims.contains(c)) {
            self.writes.push(Write::Claim {
                key: keys::claim(R::TREE, &new),
                holder: key.to_owned(),
                claim: new,
            });
        }
        let value = match Stored::encode(version, after) {
            Ok(value) => value,
            Err(e) => {
                self.unwritable = Some(e);
                return;
            }
        };
        let cached: Cached = Arc::new(Stored { version, record: after.clone() });
        self.writes.push(Write::Row {
            tree: R::TREE,
            key: key.into(),
            value: Some(value),
            cached: Some(cached),
        });
    }

    fn forget<R: Record>(&mut self, key: &str, record: &R) {
        for entry in record.index() {
            self.point(R::TREE, &entry, key, false);
        }
        for claim in record.claims() {
            self.writes.push(Write::Row {
                tree: CLAIMS,
                key: keys::claim(R::TREE, &claim),
                value: None,
                cached: None,
            });
        }
    }

    fn point(&mut self, tree: &'static str, entry: &str, key: &str, there: bool) {
        let value = there.then(Vec::new);
        self.writes.push(Write::Row {
            tree: INDEX,
            key: keys::entry(tree, entry, key),
            value,
            cached: None,
        });
    }
}
