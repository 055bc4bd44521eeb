//! Rows in sled.

use crate::{
    Memory, StoreError, io, lock, open, read_failed, recovery,
    rows::{Each, Order, Rows, Writes},
};
use std::{
    collections::HashSet,
    ffi::OsString,
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The rows of a store in one tree of sled, because a batch of one tree costs sled half as much as a
/// transaction over several trees.
pub(crate) struct SledRows {
    db: sled::Db,
    rows: sled::Tree,
    /// The file of sled's log.
    log: File,
    /// The folder of the nodes that are too large for sled's log.
    blobs: PathBuf,
    /// The files in it that are synced and sealed.
    synced: Mutex<HashSet<OsString>>,
    _lock: lock::Lock,
}

impl SledRows {
    /// Opens the rows in a folder that this process has locked. What an interrupted start left is removed
    /// first.
    pub(crate) fn open(
        folder: &Path,
        lock: lock::Lock,
        memory: Memory,
    ) -> Result<Self, StoreError> {
        let db = open::db(&folder.join("sled"), memory.pages)?;
        open::check_format(&db)?;
        let opened = SledRows {
            rows: db.open_tree("rows").map_err(io)?,
            log: File::options().write(true).open(folder.join("sled/db")).map_err(io)?,
            db,
            blobs: folder.join("sled/blobs"),
            synced: Mutex::default(),
            _lock: lock,
        };
        // The mark says that there is a log, so the log of a new store is on the disk before it.
        opened.flush()?;
        recovery::make_durable(folder)?;
        Ok(opened)
    }

    /// Syncs and seals the files of large nodes, which sled does not sync. Its log refers to them.
    fn flush_blobs(&self) -> Result<(), StoreError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = HashSet::new();
        let entries = match std::fs::read_dir(&self.blobs) {
            Ok(entries) => Some(entries),
            // sled has written no large node yet
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(io(e)),
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            if !synced.contains(&name) {
                match recovery::seal(&entry.path()) {
                    Ok(()) => {}
                    // A later version of the node replaced the file.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(io(e)),
                }
            }
            there.insert(name);
        }
        if there.iter().any(|name| !synced.contains(name)) {
            File::open(&self.blobs).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        *synced = there;
        Ok(())
    }
}

impl Rows for SledRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.rows.get(key).map_err(read_failed)?.map(|value| value.to_vec()))
    }

    fn range(&self, keys: Range<Vec<u8>>, order: Order, each: Each<'_>) -> Result<(), StoreError> {
        let mut rows = self.rows.range(keys);
        let next = || match order {
            Order::FirstKeyFirst => rows.next(),
            Order::LastKeyFirst => rows.next_back(),
        };
        for row in std::iter::from_fn(next) {
            let (key, value) = row.map_err(read_failed)?;
            if !each(&key, &value)? {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        self.rows.apply_batch(batch).map_err(io)
    }

    /// Makes the flush of sled a barrier with `fdatasync`: sled 0.34 uses `sync_file_range`, which leaves
    /// out the drive's cache and the inode.
    #[allow(clippy::disallowed_methods, reason = "this is where it is made a barrier")]
    fn flush(&self) -> Result<(), StoreError> {
        self.flush_blobs()?;
        self.db.flush().map_err(io)?;
        self.log.sync_data().map_err(io)
    }

    fn size(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }
}
