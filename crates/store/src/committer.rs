//! The one thread that writes. Many callers share one batch and one flush.

use crate::{Change, Inner, StoreError, batch::Batch, io, join, room::Room, vitals::Vitals};
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
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

pub(crate) struct Committer {
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Committer {
    pub(crate) fn start(
        inner: Arc<Inner>,
        mut room: Option<Room>,
    ) -> Result<Committer, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("committer".into())
            .spawn(move || {
                let failed = |vitals: &Vitals| {
                    vitals.break_down("the committer failed; restart the service");
                };
                inner.vitals.guard(failed, || run(&inner, room.as_mut(), &jobs));
            })
            .map_err(io)?;
        Ok(Committer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit(&self, job: Job) -> Result<(), StoreError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue.as_ref().is_some_and(|q| q.send(job).is_ok());
        if sent { Ok(()) } else { Err(StoreError::Busy("the store is closed".into())) }
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

fn run(inner: &Inner, mut room: Option<&mut Room>, jobs: &mpsc::Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut bytes = first.change.bytes();
        let mut batch = vec![first];
        while batch.len() < LARGEST_BATCH && bytes < LARGEST_BATCH_BYTES {
            let Ok(next) = jobs.try_recv() else { break };
            bytes += next.change.bytes();
            batch.push(next);
        }
        let jobs = batch;
        inner.vitals.dequeue(jobs.len() as u64);
        let begun = Instant::now();
        let asks_only = jobs.iter().all(|job| job.change.is_empty());
        let checked = room.as_mut().filter(|_| !asks_only).map_or(Ok(()), |room| room.check(bytes));
        if let Err(e) = inner.vitals.check().and(checked) {
            if e == StoreError::NoRoom {
                inner.vitals.is_full();
            }
            refuse(jobs, &e);
            continue;
        }
        if !asks_only {
            inner.vitals.has_room();
        }
        let mut batch = Batch::new(inner);
        let mut told = Vec::with_capacity(jobs.len());
        for Job { change, done } in jobs {
            told.push((done, batch.add(change).map_err(|refusal| refusal.why)));
        }
        match batch.write().and_then(|()| inner.rows.flush()) {
            Ok(()) => inner.vitals.took(begun.elapsed()),
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
}

fn refuse(jobs: Vec<Job>, why: &StoreError) {
    for done in jobs.into_iter().filter_map(|job| job.done) {
        let _ = done.send(Err(why.clone()));
    }
}
