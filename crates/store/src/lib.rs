//! Typed, versioned records, and one committer, over rows in sled or in memory.
//!
//! One thread makes all durable changes: the rows of a batch of [`Change`]s are written whole or not at
//! all, the thread flushes once, and then answers the callers. Index entries and unique claims are in the
//! same batch as their records. This crate knows nothing of the platform, and only `sled_rows.rs`,
//! `open.rs`, `recovery.rs` and `room.rs` know sled. Users see one tree for each kind of record.
//!
//! A kind says what its records are found by, and what only one of them may have:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use store::{Change, Claims, Entries, Memory, Record, Store, StoreError};
//!
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
//! struct Book {
//!     title: String,
//!     shelf: String,
//! }
//!
//! store::entries! { enum BookIndex of Book { On { shelf: String } = "on" } }
//! store::claims! { enum BookClaim of Book { Title { title: String } = "title" } }
//!
//! impl Record for Book {
//!     const TREE: &'static str = "book";
//!     const SCHEMA: u16 = 1;
//!     type Key = u32;
//!     type Content = Book;
//!     fn index(book: &Book) -> Entries<Book> {
//!         Entries::default().and(BookIndex::On { shelf: book.shelf.clone() })
//!     }
//!     fn claims(book: &Book) -> Claims<Book> {
//!         Claims::default().and(BookClaim::Title { title: book.title.clone() })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let store = Store::open(folder.path(), &[Book::TREE], Memory::default())?;
//! let emma = Book { title: "Emma".into(), shelf: "A".into() };
//! store.commit(Change::new().create::<Book>(&1, emma.clone())).await?;
//!
//! // Whoever read a record writes it only if nobody else did meanwhile.
//! let read = store.get::<Book>(&1)?.ok_or("it is there")?;
//! let moved = || Book { shelf: "B".into(), ..emma.clone() };
//! store.commit(Change::new().replace::<Book>(&1, Some(&read), moved())).await?;
//! let late = store.commit(Change::new().replace::<Book>(&1, Some(&read), moved())).await;
//! assert!(matches!(late, Err(StoreError::Stale { .. })));
//!
//! // The index follows, and a second book of this title is refused.
//! let on_b = BookIndex::On { shelf: "B".into() };
//! assert_eq!(store.newest(&on_b, None).keys().collect::<Result<Vec<_>, _>>()?, [1]);
//! let taken = store.commit(Change::new().create::<Book>(&2, emma)).await;
//! assert!(matches!(taken, Err(StoreError::Taken { .. })));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod batch;
mod bulletins;
mod cache;
mod change;
mod check;
mod committer;
mod dump;
mod error;
mod inner;
mod keys;
mod leases;
mod list;
mod lock;
mod memory_rows;
mod open;
mod others;
mod postgres;
mod record;
mod recovery;
mod room;
mod rows;
mod sled_rows;
mod vitals;
mod writer;

pub use bulletins::Bulletin;
pub use change::Change;
pub use check::Finding;
pub use error::StoreError;
pub use leases::{Lease, Shard};
pub use list::List;
pub use others::{Event, Others};
pub use postgres::{Nodes, Postgres};
pub use record::{Claim, Claims, Entries, Entry, Key, Merge, Record, Snapshot, Stored};

use cache::Cached;
use committer::{Committer, Job};
use error::{io, read_failed};
use inner::Inner;
use leases::Leases;
use memory_rows::MemoryRows;
use postgres::Database;
use room::Room;
use rows::Order;
use sled_rows::SledRows;
use std::{any::Any, fmt::Display, ops::Range, path::Path, sync::Arc, thread, time::Duration};
use tokio::sync::oneshot;
use writer::Writer;

/// The first parts of the keys of index entries and unique claims.
const INDEX: &str = "index";
const CLAIMS: &str = "claims";

/// An open store. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    writer: Writer,
}

/// How much memory the store may use.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes of sled's page cache.
    pub pages: u64,
    /// Bytes of the decoded records of all kinds, by their estimate.
    pub records: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { pages: 64 << 20, records: 128 << 20 }
    }
}

impl Store {
    /// Opens the directory with the kinds of records that it may hold. Makes a missing directory.
    ///
    /// Refuses a directory that another process has open, a directory of another format, and a
    /// damaged one. What an interrupted start left is removed first.
    pub fn open(path: &Path, kinds: &[&'static str], memory: Memory) -> Result<Store, StoreError> {
        std::fs::create_dir_all(path).map_err(io)?;
        let lock = lock::Lock::take(path)?;
        recovery::mend(path)?;
        let mut room = Room::new(path);
        // A start on a full disk uses the reserve. If that is not enough, sled says so.
        let _ = room.check(0);
        let rows = Box::new(SledRows::open(path, lock, memory)?);
        let inner = Inner::new(rows, Some(path), kinds, memory, Leases::All);
        Ok(Store {
            writer: Writer::Here(Committer::start(inner.clone(), Some(room))?.into()),
            inner,
        })
    }

    /// Opens a store whose rows are in a database. The folder gets a copy of them, and an earlier copy in it is
    /// removed.
    ///
    /// Makes the tables if there are none. Refuses a folder that another process has open, and tables that a
    /// newer program made.
    pub fn connect(
        postgres: &Postgres,
        nodes: Nodes,
        folder: &Path,
        kinds: &[&'static str],
        memory: Memory,
    ) -> Result<Store, StoreError> {
        std::fs::create_dir_all(folder).map_err(io)?;
        let lock = lock::Lock::take(folder)?;
        recovery::clear(folder)?;
        let rows = Box::new(SledRows::open(folder, lock, memory)?);
        let leases = match nodes {
            Nodes::One => Leases::All,
            Nodes::Several => Leases::none(),
        };
        let inner = Inner::new(rows, Some(folder), kinds, memory, leases);
        let database = Database::connect(postgres, nodes, inner.clone())?;
        Ok(Store { writer: Writer::Database(database.into()), inner })
    }

    /// A store that ends with the process: for tests, and for programs that keep nothing.
    pub fn in_memory(kinds: &[&'static str]) -> Result<Store, StoreError> {
        let (rows, memory) = (Box::<MemoryRows>::default(), Memory::default());
        let inner = Inner::new(rows, None, kinds, memory, Leases::All);
        Ok(Store { writer: Writer::Here(Committer::start(inner.clone(), None)?.into()), inner })
    }

    /// Returns when readers see every change that was acknowledged before this call, by whichever process
    /// that shares the rows.
    pub async fn fence(&self) -> Result<(), StoreError> {
        self.writer.fence().await
    }

    /// The lease for an id or a name, if this process acts for it now. It always does where it is alone.
    pub fn lease(&self, id: &(impl Display + ?Sized)) -> Option<Lease> {
        self.inner.leases.lease(id)
    }

    /// Whether no other process may share the rows.
    pub fn is_alone(&self) -> bool {
        self.inner.leases.are_all()
    }

    /// The leases that this process holds now. None where it is alone.
    pub fn leases(&self) -> Vec<Lease> {
        self.inner.leases.all()
    }

    /// Whether this process still holds this lease, in this epoch.
    pub fn has(&self, lease: Lease) -> bool {
        self.inner.leases.has(lease)
    }

    /// Tells the other processes that share the rows a text on a topic, within two seconds if the database answers.
    /// It takes the place of an earlier one.
    pub fn post(&self, topic: &'static str, text: Vec<u8>) {
        if !self.is_alone() {
            self.inner.bulletins.post(topic, text);
        }
    }

    /// What other processes, which live, told last on a topic.
    pub fn bulletins(&self, topic: &str) -> Vec<Bulletin> {
        self.inner.bulletins.of_others(topic)
    }

    /// Tells from now on what other processes that share the rows did.
    pub fn others(&self) -> Others {
        Others::new(&self.inner)
    }

    /// Reads a record. Readers share the record in the cache; it is not copied.
    pub fn get<R: Record>(&self, key: &R::Key) -> Result<Option<Snapshot<R>>, StoreError> {
        self.inner.vitals.check_readable()?;
        self.inner.check_kind(R::TREE)?;
        let row = keys::record(R::TREE, key);
        if !R::CACHED {
            return Ok(self.inner.read::<R>(key, &row)?.map(|(record, _)| record));
        }
        let read =
            || Ok(self.inner.read::<R>(key, &row)?.map(|(record, bytes)| Cached { record, bytes }));
        let found = self.inner.cache.get_or(&row, read)?;
        Ok(found.and_then(|Cached { record, .. }| {
            let record: Arc<dyn Any + Send + Sync> = record;
            record.downcast::<Stored<R>>().ok()
        }))
    }

    /// The records of `R` that carry the index entry, last key first, from the one before `after`.
    pub fn newest<R: Record>(&self, entry: &impl Entry<R>, after: Option<&R::Key>) -> List<'_, R> {
        let entry = entry.to_string();
        let Range { start, end } = keys::entries(R::TREE, &entry);
        let end = after.map_or(end, |after| keys::entry(R::TREE, &entry, &after.to_string()));
        List::new(self, start..end, Order::LastKeyFirst)
    }

    /// The records of `R` that carry the index entry, first key first, from the one after `after`.
    pub fn oldest<R: Record>(&self, entry: &impl Entry<R>, after: Option<&R::Key>) -> List<'_, R> {
        let entry = entry.to_string();
        let Range { start, end } = keys::entries(R::TREE, &entry);
        let after = after.map(|after| keys::entry(R::TREE, &entry, &after.to_string()));
        List::new(self, after.map_or(start, keys::after)..end, Order::FirstKeyFirst)
    }

    /// The records of `R` whose index entry has the same name and sorts before `entry`, in order.
    ///
    /// For entries that end with a time: the records that are due before it.
    pub fn before<R: Record>(&self, entry: &impl Entry<R>) -> List<'_, R> {
        let rows = keys::entries_before(R::TREE, &entry.to_string());
        List::new(self, rows, Order::FirstKeyFirst)
    }

    /// All records of `R`, last key first, from the one before `after`.
    pub fn whole<R: Record>(&self, after: Option<&R::Key>) -> List<'_, R> {
        let Range { start, end } = keys::records(R::TREE);
        let end = after.map_or(end, |after| keys::record(R::TREE, after));
        List::new(self, start..end, Order::LastKeyFirst)
    }

    /// All records of `R`, first key first.
    pub fn from_first<R: Record>(&self) -> List<'_, R> {
        List::new(self, keys::records(R::TREE), Order::FirstKeyFirst)
    }

    /// How many records carry the index entry.
    pub fn count<R: Record>(&self, entry: &impl Entry<R>) -> Result<u64, StoreError> {
        let (keys, mut count) = (keys::entries(R::TREE, &entry.to_string()), 0);
        self.inner.rows()?.range(keys, Order::FirstKeyFirst, &mut |_, _| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    /// How many different index entries have the name of `entry`, which is `entry` without its last part.
    /// It is counted up to `most`, and reads one row for each.
    pub fn count_different<R: Record>(
        &self,
        entry: &impl Entry<R>,
        most: usize,
    ) -> Result<usize, StoreError> {
        let Range { mut start, end } = keys::entries_named_like(R::TREE, &entry.to_string());
        let (rows, mut count) = (self.inner.rows()?, 0);
        while count < most {
            let mut next = None;
            rows.range(start..end.clone(), Order::FirstKeyFirst, &mut |key, _| {
                next = Some(keys::after_entry(key));
                Ok(false)
            })?;
            let Some(after) = next else { break };
            (start, count) = (after, count + 1);
        }
        Ok(count)
    }

    /// The key of the record that holds a unique value.
    pub fn holder<R: Record>(&self, claim: &impl Claim<R>) -> Result<Option<R::Key>, StoreError> {
        let key = keys::claim(R::TREE, &claim.to_string());
        let found = self.inner.rows()?.get(&key)?;
        found.map(|key| keys::read::<R>(&String::from_utf8_lossy(&key))).transpose()
    }

    /// Returns when the change is on the disk, or refused.
    pub async fn commit(&self, change: Change) -> Result<(), StoreError> {
        if let Some(e) = change.unwritable {
            return Err(e);
        }
        let (done, told) = oneshot::channel();
        self.writer.submit(&self.inner, Job { change, done: Some(done) })?;
        told.await.map_err(|_| StoreError::Io("the committer stopped".into()))?
    }

    /// Returns when every change that readers can see is on the disk. Readers see a change a moment
    /// before it is durable, so a caller waits here before it acknowledges what it read.
    pub async fn barrier(&self) -> Result<(), StoreError> {
        self.commit(Change::new()).await
    }

    /// Writes a change without waiting for it. The change is durable a moment later, or lost: when
    /// the process ends first, or when the committer refuses it.
    pub fn note(&self, change: Change) {
        if let Some(e) = change.unwritable {
            tracing::error!(error = %e, "a note was not written");
            return;
        }
        if let Err(e) = self.writer.submit(&self.inner, Job { change, done: None }) {
            tracing::warn!(error = %e, "a note was not written");
        }
    }

    /// Writes the submitted changes, then stops the committer. Later changes are refused.
    pub fn close(&self) {
        self.writer.stop();
    }

    /// How long the last batch took to write and flush, in milliseconds; `None` before the first.
    /// The error says why the store takes no changes.
    pub fn last_flush_ms(&self) -> Result<Option<f64>, String> {
        self.inner.vitals.last_flush_ms()
    }

    /// Whether the store takes no changes and whoever opens it in another process can go on: a full disk
    /// broke it and there is room again, or its copy of the database is of no use. sled cannot go on after a
    /// write for which there was no room. The store asks for room before it writes, so this is rare.
    pub fn would_open_again(&self) -> bool {
        let has_room = || self.inner.folder.as_deref().is_some_and(room::is_there);
        self.inner.vitals.would_open_again(has_room)
    }

    /// How long ago the copy was what the database holds; zero without a database.
    pub fn age_of_copy(&self) -> Duration {
        self.inner.vitals.age_of_copy()
    }

    /// Whether nothing was ever written.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        let mut is_empty = true;
        self.inner.rows()?.range(keys::all(), Order::FirstKeyFirst, &mut |_, _| {
            is_empty = false;
            Ok(false)
        })?;
        Ok(is_empty)
    }

    /// How many changes wait for the committer.
    pub fn waiting(&self) -> u64 {
        self.inner.vitals.waiting()
    }

    /// Bytes of the store on the disk; 0 if that is not known.
    pub fn size_on_disk(&self) -> u64 {
        self.inner.rows.size()
    }
}

/// Waits until a thread has ended, also by a panic.
pub(crate) fn join(thread: thread::JoinHandle<()>) {
    let _ = thread.join();
}
