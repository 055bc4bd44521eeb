//! sled behind typed, versioned records, and one committer.
//!
//! All durable changes go through one thread: a batch of [`Change`]s that sled applies whole or not
//! at all, one flush, one `fdatasync`, then the answers. Index entries and unique claims are in the
//! same batch as the records they belong to. This crate knows nothing of the platform.
//!
//! To its users each kind of record has a tree of its own. Under them is one tree of sled, because
//! a batch of one tree costs sled half of what a transaction over several does.

#![warn(missing_docs)]

mod batch;
mod change;
mod check;
mod committer;
mod dump;
mod keys;
mod lock;
mod record;

pub use change::Change;
pub use check::Finding;
pub use record::{Claim, Claims, Entries, Entry, Key, Merge, Record, Snapshot, Stored};

use change::Cached;
use committer::{Committer, Job, Vitals};
use quick_cache::sync::Cache;
use std::{
    ops::Range,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    thread,
};
use tokio::sync::oneshot;

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody wrote a record since it was read; nothing of the change was done.
    #[error("{tree}/{key} changed since it was read")]
    Stale {
        /// The kind of the record.
        tree: &'static str,
        /// Its key.
        key: String,
    },
    /// A unique value belongs to another record already; nothing of the change was done.
    #[error("{claim} is taken")]
    Taken {
        /// The claim as [`Record::claims`] spells it.
        claim: String,
    },
    /// A record was written by a newer version of the program, or is damaged; or the disk did not
    /// give it.
    #[error("{0}")]
    Unreadable(String),
    /// JSON cannot hold the record; nothing of the change was done.
    #[error("{0}")]
    Unwritable(String),
    /// The directory belongs to another process.
    #[error("{0}")]
    InUse(String),
    /// It takes no changes now; nothing of the change was done.
    #[error("{0}")]
    Busy(String),
    /// The disk refused. Whether the change is there can only be said by reading.
    #[error("the store's disk: {0}")]
    Io(String),
}

/// Where index entries and unique claims are kept, beside the kinds of records.
const INDEX: &str = "index";
const CLAIMS: &str = "claims";
/// What the layout itself is called. A directory of another one is refused.
const FORMAT: u32 = 2;

/// An open store. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    committer: Arc<Committer>,
}

pub(crate) struct Inner {
    db: sled::Db,
    rows: sled::Tree,
    kinds: Vec<Kind>,
    file: std::fs::File,
    /// Where sled puts nodes that are too large for its log.
    blobs: std::path::PathBuf,
    /// Held by the committer while rows and cache differ, and by readers who miss the cache:
    /// else a reader could see a new row, and then the old one in the cache.
    view: RwLock<()>,
    vitals: Vitals,
    _lock: lock::Lock,
}

pub(crate) struct Kind {
    name: &'static str,
    cache: Cache<String, Cached>,
}

/// How much memory the store may use.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes of sled's page cache.
    pub pages: u64,
    /// Decoded records kept for each kind.
    pub records: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { pages: 64 << 20, records: 20_000 }
    }
}

impl Store {
    /// Opens the directory, made where it is missing, with the kinds of records it may hold.
    ///
    /// Refuses a directory that another process has open, and one of a newer format.
    pub fn open(path: &Path, kinds: &[&'static str], memory: Memory) -> Result<Store, StoreError> {
        std::fs::create_dir_all(path).map_err(io)?;
        let lock = lock::Lock::take(path)?;
        let config = sled::Config::new().path(path.join("sled")).cache_capacity(memory.pages);
        let db = config.flush_every_ms(None).open().map_err(io)?;
        check_format(&db)?;
        let rows = db.open_tree("rows").map_err(io)?;
        let kind = |name: &&'static str| Kind { name, cache: Cache::new(memory.records) };
        let kinds = kinds.iter().map(kind).collect();
        let file = std::fs::File::options().write(true).open(path.join("sled/db")).map_err(io)?;
        let inner = Arc::new(Inner {
            db,
            rows,
            kinds,
            file,
            blobs: path.join("sled/blobs"),
            view: RwLock::new(()),
            vitals: Vitals::default(),
            _lock: lock,
        });
        let committer = Arc::new(Committer::start(inner.clone())?);
        Ok(Store { inner, committer })
    }

    /// Reads a record. What the cache holds is shared, not copied.
    pub fn get<R: Record>(&self, key: &R::Key) -> Result<Option<Snapshot<R>>, StoreError> {
        self.inner.vitals.check_readable()?;
        let key = key.to_string();
        match self.inner.kind(R::TREE)?.cache.get_value_or_guard(key.as_str(), None) {
            quick_cache::sync::GuardResult::Value(cached) => {
                Ok(cached.downcast::<Stored<R>>().ok())
            }
            quick_cache::sync::GuardResult::Timeout => self.inner.read(&key),
            // The committer replaces the key, and with it this guard: a value that was read before
            // a change cannot be put back after it.
            quick_cache::sync::GuardResult::Guard(guard) => {
                let found = self.inner.read::<R>(&key)?;
                if let Some(stored) = &found {
                    let _ = guard.insert(stored.clone());
                }
                Ok(found)
            }
        }
    }

    /// Keys of `R` that carry the index entry, newest first, after a cursor.
    pub fn newest<R: Record>(
        &self,
        entry: &impl Entry<R>,
        after: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, StoreError> {
        let entry = entry.to_string();
        let Range { start, end } = keys::entries(R::TREE, &entry);
        let end = after.map_or(end, |after| keys::entry(R::TREE, &entry, &after.to_string()));
        typed::<R>(self.inner.rows()?.range(start..end).keys().rev().take(limit))
    }

    /// Keys of `R` that carry the index entry, oldest first, after a cursor.
    pub fn oldest<R: Record>(
        &self,
        entry: &impl Entry<R>,
        after: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, StoreError> {
        let entry = entry.to_string();
        let Range { start, end } = keys::entries(R::TREE, &entry);
        let after = after.map(|after| keys::entry(R::TREE, &entry, &after.to_string()));
        let start = after.map_or(start, |after| [after, vec![0]].concat());
        typed::<R>(self.inner.rows()?.range(start..end).keys().take(limit))
    }

    /// Keys of `R` whose index entry has the name of this one and sorts before it, in order.
    ///
    /// For entries that end with a moment: what is due before it.
    pub fn before<R: Record>(
        &self,
        entry: &impl Entry<R>,
        limit: usize,
    ) -> Result<Vec<R::Key>, StoreError> {
        let rows = self.inner.rows()?.range(keys::entries_before(R::TREE, &entry.to_string()));
        typed::<R>(rows.keys().take(limit))
    }

    /// How many records carry the index entry.
    pub fn count<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, StoreError> {
        let mut count = 0;
        for key in self.inner.rows()?.range(keys::entries(R::TREE, &entry.to_string())).keys() {
            key.map_err(unread)?;
            count += 1;
        }
        Ok(count)
    }

    /// The key of the record that holds a unique value.
    pub fn holder<R: Record>(&self, claim: &impl Claim<R>) -> Result<Option<R::Key>, StoreError> {
        let key = keys::claim(R::TREE, &claim.to_string());
        let found = self.inner.rows()?.get(key).map_err(unread)?;
        found.map(|key| keys::read::<R>(&String::from_utf8_lossy(&key))).transpose()
    }

    /// Keys of `R`, last first, before a cursor. For kinds whose keys are time-ordered and which
    /// are listed whole.
    pub fn keys<R: Record>(
        &self,
        before: Option<&R::Key>,
        limit: usize,
    ) -> Result<Vec<R::Key>, StoreError> {
        let Range { start, end } = keys::records(R::TREE);
        let end = before.map_or(end, |before| keys::record(R::TREE, &before.to_string()));
        typed::<R>(self.inner.rows()?.range(start..end).keys().rev().take(limit))
    }

    /// Returns when the change is on the disk, or was refused.
    pub async fn commit(&self, change: Change) -> Result<(), StoreError> {
        if let Some(e) = change.unwritable {
            return Err(e);
        }
        let (done, told) = oneshot::channel();
        self.committer.submit(Job { change, done: Some(done) })?;
        told.await.map_err(|_| StoreError::Io("the committer stopped".into()))?
    }

    /// Returns when all that readers can see now is on the disk. A change is seen as soon as it is
    /// made, a moment before it is durable; who passes on what it saw waits here first.
    pub async fn barrier(&self) -> Result<(), StoreError> {
        self.commit(Change::new()).await
    }

    /// Writes what nobody waits for. It is durable a moment later, or lost with the process.
    pub fn note(&self, change: Change) {
        if let Some(e) = change.unwritable {
            tracing::error!(error = %e, "a note was not written");
            return;
        }
        let _ = self.committer.submit(Job { change, done: None });
    }

    /// Writes what was submitted, and stops. Later changes are refused.
    pub fn close(&self) {
        self.committer.stop();
    }

    /// How long the last flush took, in milliseconds; none yet: `None`. An error is the last one's.
    pub fn last_flush_ms(&self) -> Result<Option<f64>, String> {
        self.inner.vitals.last_flush_ms()
    }

    /// Changes that wait for the committer.
    pub fn waiting(&self) -> u64 {
        self.inner.vitals.waiting()
    }

    /// Bytes that the store takes on the disk.
    pub fn size_on_disk(&self) -> u64 {
        self.inner.db.size_on_disk().unwrap_or(0)
    }
}

impl Inner {
    pub(crate) fn kind(&self, name: &str) -> Result<&Kind, StoreError> {
        let found = self.kinds.iter().find(|k| std::ptr::eq(k.name, name) || k.name == name);
        found.ok_or_else(|| {
            StoreError::Unreadable(format!(
                "the kind {name} was not named when the store was opened"
            ))
        })
    }

    /// The rows, where they can be read.
    pub(crate) fn rows(&self) -> Result<&sled::Tree, StoreError> {
        self.vitals.check_readable().map(|()| &self.rows)
    }

    fn read<R: Record>(&self, key: &str) -> Result<Option<Snapshot<R>>, StoreError> {
        let _shared = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = self.rows()?.get(keys::record(R::TREE, key)).map_err(unread)?;
        bytes.map(|bytes| Stored::decode(key, &bytes).map(Arc::new)).transpose()
    }
}

/// The first opening writes the format; later ones compare.
fn check_format(db: &sled::Db) -> Result<(), StoreError> {
    let known = db.get("format").map_err(io)?;
    match known.and_then(|v| v.as_ref().try_into().ok().map(u32::from_be_bytes)) {
        None => db.insert("format", &FORMAT.to_be_bytes()).map(|_| ()).map_err(io),
        Some(FORMAT) => Ok(()),
        Some(other) => Err(StoreError::Unreadable(format!(
            "the store has format {other}, this program knows format {FORMAT}: use the version that wrote it"
        ))),
    }
}

pub(crate) fn io(e: impl std::fmt::Display) -> StoreError {
    StoreError::Io(e.to_string())
}

pub(crate) fn unread(e: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable(format!("the store's disk: {e}"))
}

/// The keys of records, from the rows that point at them.
fn typed<R: Record>(
    rows: impl Iterator<Item = sled::Result<sled::IVec>>,
) -> Result<Vec<R::Key>, StoreError> {
    rows.map(|row| keys::read::<R>(&keys::last_part(&row.map_err(unread)?)?)).collect()
}

/// Waits for a thread that may have panicked; either way it is gone.
pub(crate) fn join(thread: thread::JoinHandle<()>) {
    let _ = thread.join();
}
