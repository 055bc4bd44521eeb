//! What readers and the writer of a store share: the rows, and the decoded records in memory.

use crate::{
    Memory, Record, Snapshot, StoreError, Stored,
    batch::Seen,
    bulletins::Bulletins,
    cache::Cache,
    leases::Leases,
    others,
    rows::{Rows, Writes},
    vitals::Vitals,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

pub(crate) struct Inner {
    pub(crate) rows: Box<dyn Rows>,
    /// The names of the kinds of records.
    kinds: Vec<&'static str>,
    /// Decoded records under the keys of their rows.
    pub(crate) cache: Cache,
    /// The folder of the store, if its rows are on a disk.
    pub(crate) folder: Option<PathBuf>,
    /// The committer holds this while rows and cache differ, and readers that miss the cache hold
    /// it too: else a reader could see a new row first, and then the old one in the cache.
    view: RwLock<()>,
    pub(crate) vitals: Vitals,
    pub(crate) leases: Leases,
    pub(crate) bulletins: Bulletins,
    /// Gets the keys of the records that other processes have written.
    pub(crate) others: others::Sender,
}

impl Inner {
    pub(crate) fn new(
        rows: Box<dyn Rows>,
        folder: Option<&Path>,
        kinds: &[&'static str],
        memory: Memory,
        leases: Leases,
    ) -> Arc<Inner> {
        Arc::new(Inner {
            rows,
            kinds: kinds.to_vec(),
            cache: Cache::new(memory.records),
            folder: folder.map(Path::to_owned),
            view: RwLock::new(()),
            vitals: Vitals::default(),
            leases,
            bulletins: Bulletins::default(),
            others: others::sender(),
        })
    }

    /// Refuses a kind that was not named when the store was opened.
    pub(crate) fn check_kind(&self, name: &str) -> Result<(), StoreError> {
        // Nearly always the same text, which is found without a look at the letters.
        let mut kinds = self.kinds.iter();
        if kinds.any(|kind| std::ptr::eq(*kind, name)) || self.kinds.contains(&name) {
            return Ok(());
        }
        Err(StoreError::Unreadable(format!(
            "the kind {name} was not named when the store was opened"
        )))
    }

    /// The rows, unless a batch was written in part.
    pub(crate) fn rows(&self) -> Result<&dyn Rows, StoreError> {
        self.vitals.check_readable().map(|()| &*self.rows)
    }

    /// Reads a record, and how many bytes it has in the store.
    pub(crate) fn read<R: Record>(
        &self,
        key: &R::Key,
        row: &[u8],
    ) -> Result<Option<(Snapshot<R>, usize)>, StoreError> {
        let _shared = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.rows()?.get(row)?;
        let decode = |bytes: Vec<u8>| {
            Stored::decode(&key.to_string(), &bytes).map(|stored| (Arc::new(stored), bytes.len()))
        };
        bytes.map(decode).transpose()
    }

    /// Writes rows, and puts the records that were written into the cache. No reader sees one without the
    /// other.
    pub(crate) fn enter(&self, rows: Writes, seen: Vec<Seen>) -> Result<(), StoreError> {
        let _alone = self.view.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = self.rows.apply(rows) {
            // A part of the batch may be visible until the store is opened again.
            self.vitals.tear();
            return Err(e);
        }
        for Seen { row, cached } in seen {
            self.cache.put(row, cached);
        }
        Ok(())
    }
}
