//! Many changes as one write of rows. Each change is checked against the rows and the earlier
//! changes of the batch, and enters the batch whole or not at all.

use crate::{
    Change, Inner, StoreError, cache::Cached, change::Write, keys, record::version_of, rows::Writes,
};
use std::sync::PoisonError;

/// The rows to write, and the records that readers see after the write.
pub(crate) struct Batch<'a> {
    inner: &'a Inner,
    rows: Writes,
    seen: Vec<Seen>,
}

/// A record that was written or removed, for the cache.
struct Seen {
    row: Vec<u8>,
    cached: Option<Cached>,
}

/// The part of one change in a batch.
#[derive(Default)]
struct Part {
    rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    seen: Vec<Seen>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(inner: &'a Inner) -> Self {
        Batch { inner, rows: Writes::new(), seen: Vec::new() }
    }

    /// Adds a change if all its expectations hold; else adds nothing of it.
    pub(crate) fn add(&mut self, change: Change) -> Result<(), StoreError> {
        let mut part = Part::default();
        self.plan(change.writes, &mut part)?;
        self.rows.extend(part.rows);
        self.seen.extend(part.seen);
        Ok(())
    }

    /// Looks at a row as the earlier changes of the batch left it.
    fn stored<T>(
        &self,
        key: &[u8],
        look: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<T, StoreError> {
        match self.rows.get(key) {
            Some(written) => Ok(look(written.as_deref())),
            None => Ok(look(self.inner.rows.get(key)?.as_deref())),
        }
    }

    /// The version of a record as the earlier changes of the batch left it.
    fn version(&self, tree: &'static str, key: &str) -> Result<u64, StoreError> {
        let row = keys::record(tree, key);
        self.inner.check_kind(tree)?;
        match (self.rows.get(&row), self.inner.cache.peek(&row)) {
            // What the cache holds is what the rows hold, and is found sooner.
            (None, Some(cached)) => Ok(cached.record.version()),
            _ => self.stored(&row, version_of),
        }
    }

    fn plan(&self, writes: Vec<Write>, part: &mut Part) -> Result<(), StoreError> {
        for write in writes {
            match write {
                Write::Expect { tree, key, version } => {
                    if self.version(tree, &key)? != version {
                        return Err(StoreError::Stale { tree, key });
                    }
                }
                Write::Claim { key, holder, claim } => {
                    let by_other = |row: Option<&[u8]>| row.is_some_and(|h| h != holder.as_bytes());
                    let within = part.rows.iter().filter(|(k, _)| *k == key);
                    if self.stored(&key, by_other)?
                        || within.into_iter().any(|(_, row)| by_other(row.as_deref()))
                    {
                        return Err(StoreError::Taken { claim });
                    }
                    part.rows.push((key, Some(holder.into_bytes())));
                }
                Write::Record { tree, key, value, cached } => {
                    self.inner.check_kind(tree)?;
                    let row = keys::record(tree, &key);
                    if part.seen.iter().any(|seen| seen.row == row) {
                        let twice = format!("{tree}/{key} is written twice in one change");
                        return Err(StoreError::Unwritable(twice));
                    }
                    part.rows.push((row.clone(), value));
                    part.seen.push(Seen { row, cached });
                }
                Write::Row { key, value } => part.rows.push((key, value)),
                Write::Merge { tree, key, merge } => {
                    let writes = self.stored(&keys::record(tree, &key), merge)??;
                    self.plan(writes, part)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows and the cache. No reader sees one without the other.
    pub(crate) fn write(self) -> Result<(), StoreError> {
        let _alone = self.inner.view.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = self.inner.rows.apply(self.rows) {
            // A part of the batch may be visible until the store is opened again.
            self.inner.vitals.tear();
            return Err(e);
        }
        for Seen { row, cached } in self.seen {
            self.inner.cache.put(row, cached);
        }
        Ok(())
    }
}
