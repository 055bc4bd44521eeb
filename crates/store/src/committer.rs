//! The one thread that writes. Many callers share one batch and one flush.

use crate::{Change, Inner, StoreError, batch::Batch, io, join, room::Room};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    thread,
    time::Instant,
};
use tokio::sync::oneshot;

/// A change, and the channel to the caller that waits for it.
pub(crate) struct Job {
    pub(crate) change: Change,
    pub(crate) done: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Batches larger than this gain nothing and make the first caller wait for the last.
const LARGEST_BATCH: usize = 1024;
/// Bytes of a batch, so that the room it needs on the disk is bounded. One change may be larger.
const LARGEST_BATCH_BYTES: u64 = 4 << 20;
/// Changes that may wait before new ones are refused: at 20,000 a second, less than a second.
const LONGEST_QUEUE: u64 = 16_384;

pub(crate) struct Committer {
    inner: Arc<Inner>,
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

/// The state of the committer, for operators.
#[derive(Default)]
pub(crate) struct Vitals {
    waiting: AtomicU64,
    flush_us: AtomicU64,
    broken: Mutex<Option<Broken>>,
    /// A batch was written in part, so reads are refused.
    torn: AtomicBool,
    /// The last change was refused because the disk is full.
    full: AtomicBool,
}

/// Why the store takes no changes until it is opened again.
#[derive(Clone)]
struct Broken {
    why: String,
    /// The disk had no room, so it helps to open the store again once there is room.
    by_full_disk: bool,
}

/// How systems say that a disk has no room, and that a user may have no more of it.
const FULL: [&str; 2] = ["No space left on device", "quota exceeded"];

impl Vitals {
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Refuses all further changes. After a failed flush it is unknown what is on the disk, so the
    /// service must restart and read it.
    fn break_down(&self, why: &str) {
        let by_full_disk = FULL.iter().any(|says| why.contains(says));
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert_with(|| Broken { why: why.to_owned(), by_full_disk });
    }

    fn broken(&self) -> Option<Broken> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a full disk broke the store for good.
    pub(crate) fn is_broken_by_full_disk(&self) -> bool {
        self.broken().is_some_and(|broken| broken.by_full_disk)
    }

    /// Refuses reads until the service restarts, because a batch was written in part.
    pub(crate) fn tear(&self) {
        self.torn.store(true, SeqCst);
    }

    pub(crate) fn check_readable(&self) -> Result<(), StoreError> {
        let torn = || StoreError::Busy("a write failed; restart the service".into());
        if self.torn.load(Relaxed) { Err(torn()) } else { Ok(()) }
    }

    fn check(&self) -> Result<(), StoreError> {
        self.broken().map_or(Ok(()), |broken| Err(StoreError::Busy(broken.why)))
    }

    pub(crate) fn last_flush_ms(&self) -> Result<Option<f64>, String> {
        if let Some(broken) = self.broken() {
            return Err(broken.why);
        }
        if self.full.load(Relaxed) {
            return Err(StoreError::NoRoom.to_string());
        }
        let us = self.flush_us.load(Relaxed);
        Ok((us > 0).then_some(us as f64 / 1000.0))
    }
}

impl Committer {
    pub(crate) fn start(
        inner: Arc<Inner>,
        mut room: Option<Room>,
    ) -> Result<Committer, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let writer = inner.clone();
        let thread = thread::Builder::new()
            .name("committer".into())
            .spawn(move || run(&writer, room.as_mut(), &jobs))
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

    /// Writes the waiting changes, then ends the thread.
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

/// Marks the store as broken when the committer's thread ends by a panic. The flag says that the
/// thread ended because the store was closed.
struct Ending<'a>(&'a Vitals, bool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.break_down("the committer failed; restart the service");
        }
    }
}

fn run(inner: &Inner, mut room: Option<&mut Room>, jobs: &mpsc::Receiver<Job>) {
    let mut ending = Ending(&inner.vitals, false);
    while let Ok(first) = jobs.recv() {
        let mut bytes = first.change.bytes();
        let mut batch = vec![first];
        while batch.len() < LARGEST_BATCH && bytes < LARGEST_BATCH_BYTES {
            let Ok(next) = jobs.try_recv() else { break };
            bytes += next.change.bytes();
            batch.push(next);
        }
        let jobs = batch;
        inner.vitals.waiting.fetch_sub(jobs.len() as u64, Relaxed);
        let begun = Instant::now();
        let asks_only = jobs.iter().all(|job| job.change.is_empty());
        let checked = room.as_mut().filter(|_| !asks_only).map_or(Ok(()), |room| room.check(bytes));
        if let Err(e) = inner.vitals.check().and(checked) {
            if e == StoreError::NoRoom && !inner.vitals.full.swap(true, Relaxed) {
                tracing::error!("the disk is full: changes are refused until there is room");
            }
            refuse(jobs, &e);
            continue;
        }
        if !asks_only && inner.vitals.full.swap(false, Relaxed) {
            tracing::warn!("the disk has room again");
        }
        let mut batch = Batch::new(inner);
        let mut told = Vec::with_capacity(jobs.len());
        for Job { change, done } in jobs {
            told.push((done, batch.add(change)));
        }
        match batch.write().and_then(|()| inner.rows.flush()) {
            Ok(()) => {
                inner.vitals.flush_us.store(begun.elapsed().as_micros().max(1) as u64, Relaxed);
            }
            Err(e) => {
                tracing::error!(error = %e, changes = told.len(), "a batch of changes was not written");
                inner.vitals.break_down(&e.to_string());
                told.iter_mut().for_each(|(_, verdict)| *verdict = Err(e.clone()));
            }
        }
        for (done, verdict) in told {
            if let Some(done) = done {
                let _ = done.send(verdict);
            }
        }
    }
    ending.1 = true;
}

fn refuse(jobs: Vec<Job>, why: &StoreError) {
    for done in jobs.into_iter().filter_map(|job| job.done) {
        let _ = done.send(Err(why.clone()));
    }
}
