//! The one thread that writes. Many callers share one transaction, one flush and one `fdatasync`.

use crate::{
    CLAIMS, Change, Inner, StoreError, Tree,
    change::{Cached, Write},
    io, join,
    record::version_of,
};
use sled::transaction::{
    ConflictableTransactionError as Conflict, TransactionError, Transactional, TransactionalTree,
};
use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs::File,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Instant,
};
use tokio::sync::oneshot;

/// A change and who waits for it.
pub(crate) struct Job {
    pub(crate) change: Change,
    pub(crate) done: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Batches larger than this gain nothing and make the first caller wait for the last.
const LARGEST_BATCH: usize = 1024;
/// Changes that may wait before new ones are refused: at 20,000 a second, less than a second.
const LONGEST_QUEUE: u64 = 16_384;

pub(crate) struct Committer {
    inner: Arc<Inner>,
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

/// What operators see of the committer.
#[derive(Default)]
pub(crate) struct Vitals {
    waiting: AtomicU64,
    flush_us: AtomicU64,
    broken: Mutex<Option<String>>,
}

impl Vitals {
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// After a failed flush nobody knows what is on the disk: nothing more is written until the
    /// service starts anew and reads it.
    fn break_down(&self, why: &str) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert_with(|| why.to_owned());
    }

    fn check(&self) -> Result<(), StoreError> {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.as_ref().map_or(Ok(()), |why| Err(StoreError::Busy(why.clone())))
    }

    pub(crate) fn last_flush_ms(&self) -> Result<Option<f64>, String> {
        if let Some(why) = self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(why);
        }
        let us = self.flush_us.load(Relaxed);
        Ok((us > 0).then_some(us as f64 / 1000.0))
    }
}

impl Committer {
    pub(crate) fn start(inner: Arc<Inner>) -> Result<Committer, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let writer = inner.clone();
        let thread = thread::Builder::new()
            .name("committer".into())
            .spawn(move || run(&writer, &jobs))
            .map_err(io)?;
        Ok(Committer { inner, queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit(&self, job: Job) -> Result<(), StoreError> {
        let waiting = &self.inner.vitals.waiting;
        if waiting.fetch_add(1, Relaxed) >= LONGEST_QUEUE {
            waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Busy("too many changes wait for the disk".into()));
        }
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue.as_ref().is_some_and(|q| q.send(job).is_ok());
        if !sent {
            waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Busy("the store is closed".into()));
        }
        Ok(())
    }

    /// Writes what waits, then ends the thread.
    pub(crate) fn stop(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            join(thread);
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says that the store takes no changes any more, unless it was closed.
struct Ending<'a>(&'a Vitals, bool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.break_down("the committer failed; restart the service");
        }
    }
}

fn run(inner: &Inner, jobs: &mpsc::Receiver<Job>) {
    let mut ending = Ending(&inner.vitals, false);
    let mut blobs = HashSet::new();
    while let Ok(first) = jobs.recv() {
        let batch: Vec<Job> =
            std::iter::once(first).chain(jobs.try_iter().take(LARGEST_BATCH - 1)).collect();
        inner.vitals.waiting.fetch_sub(batch.len() as u64, Relaxed);
        let begun = Instant::now();
        let verdicts = inner.vitals.check().and_then(|()| {
            let verdicts = apply(inner, &batch)?;
            flush(inner, &mut blobs).map(|()| verdicts)
        });
        match &verdicts {
            Ok(_) => {
                inner.vitals.flush_us.store(begun.elapsed().as_micros().max(1) as u64, Relaxed)
            }
            Err(e) => {
                tracing::error!(error = %e, changes = batch.len(), "a batch of changes was not written");
                inner.vitals.break_down(&e.to_string());
            }
        }
        let mut verdicts = verdicts.map(Vec::into_iter);
        for job in batch {
            let verdict = match &mut verdicts {
                Ok(verdicts) => verdicts.next().unwrap_or(Ok(())),
                Err(e) => Err(e.clone()),
            };
            if let Some(done) = job.done {
                let _ = done.send(verdict);
            }
        }
    }
    ending.1 = true;
}

/// sled 0.34 flushes with `sync_file_range`, which leaves out the drive's cache and the inode; the
/// `fdatasync` makes it a barrier. Large nodes it writes to files of their own and does not sync:
/// those come first, since the log refers to them.
fn flush(inner: &Inner, synced: &mut HashSet<OsString>) -> Result<(), StoreError> {
    inner.db.flush().map_err(io)?;
    let mut there = HashSet::new();
    for entry in std::fs::read_dir(&inner.blobs).into_iter().flatten() {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        if !synced.contains(&name) {
            match File::open(entry.path()) {
                Ok(file) => file.sync_all().map_err(io)?,
                // a later version of the node has replaced it
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io(e)),
            }
        }
        there.insert(name);
    }
    if there.iter().any(|name| !synced.contains(name)) {
        File::open(&inner.blobs).and_then(|folder| folder.sync_all()).map_err(io)?;
    }
    *synced = there;
    inner.file.sync_data().map_err(io)
}

/// Lets readers see what a change wrote. Inserting also voids the guard of a reader on its way.
fn refresh(inner: &Inner, change: &Change) {
    for write in &change.writes {
        let (tree, key, cached): (_, _, Option<&Cached>) = match write {
            Write::Row { tree, key, cached, .. } => match std::str::from_utf8(key) {
                Ok(key) => (*tree, key, cached.as_ref()),
                Err(_) => continue,
            },
            Write::Merge { tree, key, .. } => (*tree, key.as_str(), None),
            Write::Expect { .. } | Write::Claim { .. } => continue,
        };
        let Ok(tree) = inner.tree(tree) else { continue };
        match cached {
            Some(cached) => tree.cache.insert(key.into(), cached.clone()),
            None => {
                tree.cache.remove(key);
            }
        }
    }
}

type Verdicts = Vec<Result<(), StoreError>>;

/// One transaction for the batch, and the cache with it: no reader sees one without the other. A
/// change that is refused is left out; the others do not suffer.
fn apply(inner: &Inner, batch: &[Job]) -> Result<Verdicts, StoreError> {
    let _alone = inner.view.write().unwrap_or_else(PoisonError::into_inner);
    let verdicts = transact(inner, batch)?;
    for (job, _) in batch.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()) {
        refresh(inner, &job.change);
    }
    Ok(verdicts)
}

fn transact(inner: &Inner, batch: &[Job]) -> Result<Verdicts, StoreError> {
    let trees: Vec<&sled::Tree> = inner.trees.iter().map(|t| &t.rows).collect();
    let done = trees.as_slice().transaction(|views| {
        let transaction = Transaction { trees: &inner.trees, views };
        let mut verdicts = Vec::with_capacity(batch.len());
        for job in batch {
            verdicts.push(match transaction.plan(&job.change) {
                Ok(rows) => {
                    for (tree, key, value) in rows {
                        transaction.write(tree, key, value)?;
                    }
                    Ok(())
                }
                Err(Refusal::Verdict(verdict)) => Err(verdict),
                Err(Refusal::Conflict(e)) => return Err(e),
            });
        }
        Ok(verdicts)
    });
    done.map_err(|e: TransactionError<StoreError>| match e {
        TransactionError::Abort(e) => e,
        TransactionError::Storage(e) => io(e),
    })
}

enum Refusal {
    /// The change does not hold; the batch goes on without it.
    Verdict(StoreError),
    /// The transaction itself is at fault.
    Conflict(Conflict<StoreError>),
}

impl From<sled::transaction::UnabortableTransactionError> for Refusal {
    fn from(e: sled::transaction::UnabortableTransactionError) -> Self {
        Refusal::Conflict(e.into())
    }
}

type Row = (&'static str, Vec<u8>, Option<Vec<u8>>);

struct Transaction<'a> {
    trees: &'a [Tree],
    views: &'a [TransactionalTree],
}

impl Transaction<'_> {
    fn view(&self, name: &str) -> Result<&TransactionalTree, Conflict<StoreError>> {
        let at = self.trees.iter().position(|t| t.name == name);
        let unknown =
            || Conflict::Abort(StoreError::Unreadable(format!("the kind {name} is not open")));
        at.and_then(|at| self.views.get(at)).ok_or_else(unknown)
    }

    fn write(
        &self,
        tree: &str,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    ) -> Result<(), Conflict<StoreError>> {
        let view = self.view(tree)?;
        match value {
            Some(value) => view.insert(key, value)?,
            None => view.remove(key)?,
        };
        Ok(())
    }

    /// The rows that a change writes, once all that it expects is found to hold. Nothing is
    /// written before the whole change is known to hold.
    fn plan(&self, change: &Change) -> Result<Vec<Row>, Refusal> {
        let mut rows: Vec<Row> = Vec::new();
        let mut claimed: HashMap<&[u8], &str> = HashMap::new();
        for write in &change.writes {
            match write {
                Write::Expect { tree, key, version } => {
                    let stored = self.view(tree).map_err(Refusal::Conflict)?.get(key)?;
                    if version_of(stored.as_deref()) != *version {
                        return Err(Refusal::Verdict(StoreError::Stale { tree, key: key.clone() }));
                    }
                }
                Write::Claim { key, holder, claim } => {
                    let taken = self.view(CLAIMS).map_err(Refusal::Conflict)?.get(key)?;
                    let by_other = taken.is_some_and(|h| h.as_ref() != holder.as_bytes())
                        || claimed.insert(key, holder).is_some_and(|h| h != holder);
                    if by_other {
                        return Err(Refusal::Verdict(StoreError::Taken { claim: claim.clone() }));
                    }
                    rows.push((CLAIMS, key.clone(), Some(holder.clone().into_bytes())));
                }
                Write::Row { tree, key, value, .. } => {
                    rows.push((tree, key.clone(), value.clone()))
                }
                Write::Merge { tree, key, merge } => {
                    let stored = self.view(tree).map_err(Refusal::Conflict)?.get(key)?;
                    let writes = merge(stored.as_deref()).map_err(Refusal::Verdict)?;
                    let inner = Change { writes, unwritable: None };
                    rows.extend(self.plan(&inner)?);
                }
            }
        }
        Ok(rows)
    }
}
