//! Many changes as one write of rows. Each change is checked against the rows and the earlier
//! changes of the batch, and enters the batch whole or not at all.

use crate::{
    Change, Inner, Lease, StoreError, cache::Cached, change::Write, keys, record::version_of,
    rows::Writes,
};
use std::collections::{HashMap, HashSet};

/// The rows to write, and the records that readers see after the write.
pub(crate) struct Batch<'a> {
    inner: &'a Inner,
    rows: Writes,
    seen: Vec<Seen>,
    reads: Option<Reads>,
    leases: HashSet<Lease>,
}

/// What a batch writes, what readers see after that, and what it depends on.
pub(crate) struct Parts {
    pub(crate) writes: Writes,
    pub(crate) seen: Vec<Seen>,
    pub(crate) reads: Reads,
    pub(crate) leases: HashSet<Lease>,
}

/// The stamps of the rows that a batch depends on, as they are before it.
pub(crate) type Reads = HashMap<Vec<u8>, i64>;

/// Differs where the value of a row differs. 0: there is no such row.
pub(crate) fn stamp(value: Option<&[u8]>) -> i64 {
    let Some(value) = value else { return 0 };
    // A version may come twice, when a record is removed and made anew.
    let version = i64::try_from(version_of(Some(value)) & 0x3fff_ffff).unwrap_or_default();
    (1 << 62) | (version << 32) | i64::from(crc32fast::hash(value))
}

/// Why a change is not part of a batch.
pub(crate) struct Refusal {
    pub(crate) why: StoreError,
    /// Whether earlier changes of the batch were looked at: without them, it could be another.
    pub(crate) depends: bool,
}

/// A record that was written or removed, for the cache.
pub(crate) struct Seen {
    pub(crate) row: Vec<u8>,
    pub(crate) cached: Option<Cached>,
}

/// The part of one change in a batch.
#[derive(Default)]
struct Part {
    rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    seen: Vec<Seen>,
    reads: Vec<(Vec<u8>, i64)>,
    leases: Vec<Lease>,
    depends: bool,
}

impl<'a> Batch<'a> {
    /// A batch for rows that nobody else writes: what it reads stays so until it is written.
    pub(crate) fn new(inner: &'a Inner) -> Self {
        Batch { inner, rows: Writes::new(), seen: Vec::new(), reads: None, leases: HashSet::new() }
    }

    /// A batch that also says what it depends on.
    pub(crate) fn with_reads(inner: &'a Inner) -> Self {
        Batch { reads: Some(Reads::new()), ..Batch::new(inner) }
    }

    /// Adds a change if all its expectations hold; else adds nothing of it.
    pub(crate) fn add(&mut self, change: Change) -> Result<(), Refusal> {
        let mut part = Part::default();
        if let Err(why) = self.plan(change.writes, &mut part) {
            return Err(Refusal { why, depends: part.depends });
        }
        self.rows.extend(part.rows);
        self.seen.extend(part.seen);
        self.leases.extend(part.leases);
        if let Some(reads) = &mut self.reads {
            for (row, stamp) in part.reads {
                reads.entry(row).or_insert(stamp);
            }
        }
        Ok(())
    }

    /// Looks at a row as the earlier changes of the batch left it.
    fn stored<T>(
        &self,
        key: &[u8],
        part: &mut Part,
        look: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<T, StoreError> {
        match self.rows.get(key) {
            Some(written) => {
                part.depends = true;
                Ok(look(written.as_deref()))
            }
            None => {
                let row = self.inner.rows.get(key)?;
                if self.reads.is_some() {
                    part.reads.push((key.to_vec(), stamp(row.as_deref())));
                }
                Ok(look(row.as_deref()))
            }
        }
    }

    /// The version of a record as the earlier changes of the batch left it.
    fn version(&self, tree: &'static str, key: &str, part: &mut Part) -> Result<u64, StoreError> {
        let row = keys::record(tree, key);
        self.inner.check_kind(tree)?;
        // What the cache holds is what the rows hold, and is found sooner. It has no stamp.
        if self.reads.is_none()
            && !self.rows.contains_key(&row)
            && let Some(cached) = self.inner.cache.peek(&row)
        {
            return Ok(cached.record.version());
        }
        self.stored(&row, part, version_of)
    }

    fn plan(&self, writes: Vec<Write>, part: &mut Part) -> Result<(), StoreError> {
        for write in writes {
            match write {
                Write::Expect { tree, key, version } => {
                    if self.version(tree, &key, part)? != version {
                        return Err(StoreError::Stale { tree, key });
                    }
                }
                Write::Under(lease) => {
                    if !self.inner.leases.has(lease) {
                        return Err(StoreError::NotHeld);
                    }
                    part.leases.push(lease);
                }
                Write::Claim { key, holder, claim } => {
                    let by_other = |row: Option<&[u8]>| row.is_some_and(|h| h != holder.as_bytes());
                    let within =
                        part.rows.iter().any(|(k, row)| *k == key && by_other(row.as_deref()));
                    if within || self.stored(&key, part, by_other)? {
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
                Write::Row { key, value } => {
                    // So that a follower of the database takes it for its own.
                    if self.reads.is_some() && keys::is_of_record(&key) {
                        part.seen.push(Seen { row: key.clone(), cached: None });
                    }
                    part.rows.push((key, value));
                }
                Write::Merge { tree, key, merge } => {
                    let row = keys::record(tree, &key);
                    let writes = self.stored(&row, part, |row| merge(row))??;
                    self.plan(writes, part)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows and the cache. No reader sees one without the other.
    pub(crate) fn write(self) -> Result<(), StoreError> {
        self.inner.enter(self.rows, self.seen)
    }

    pub(crate) fn into_parts(self) -> Parts {
        let Batch { rows: writes, seen, reads, leases, .. } = self;
        Parts { writes, seen, reads: reads.unwrap_or_default(), leases }
    }
}
