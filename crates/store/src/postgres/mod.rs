//! PostgreSQL as the truth, and a copy of its rows on this machine, which is read without asking.
//!
//! A change is planned on the copy and sent with the versions of all rows that it depends on. The database
//! writes it only if they are still so. The same transaction adds the keys to a feed, and a change is
//! acknowledged once the copy has it. See `docs/decisions/0024-postgresql-judges.md`.

mod address;
mod connection;
mod fill;
mod follower;
mod lane;
mod schema;

pub use address::Postgres;

use crate::{Inner, StoreError, batch::Batch, committer::Job, io, join, rows::Writes};
use connection::Connection;
use follower::{Follower, GIVEN_UP, LANES, Told, Waiter};
use futures_util::{StreamExt, stream::FuturesUnordered};
use lane::{Lane, Rowset, Written};
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc},
    thread,
    time::Instant,
};
use tokio::sync::mpsc;

/// Changes of one batch at most: more make the first caller wait for the last.
const LARGEST_BATCH: usize = 256;
/// Bytes of one batch. One change may be larger.
const LARGEST_BATCH_BYTES: u64 = 4 << 20;
/// How often a change is planned anew because another node was faster. Each time, another node went on.
const MOST_TRIES: u32 = 64;

/// How many processes may use one store at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// This one alone: it refuses to begin while another lives, and ends one that was silent.
    One,
    /// Any number.
    Several,
}

/// A database, and the thread that speaks with it.
pub(crate) struct Database {
    inner: Arc<Inner>,
    postgres: Postgres,
    jobs: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    waiters: Mutex<Option<mpsc::UnboundedSender<Waiter>>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Database {
    /// Connects, makes the tables if there are none, and fills the copy, which is empty.
    pub(crate) fn connect(
        postgres: &Postgres,
        nodes: Nodes,
        inner: Arc<Inner>,
    ) -> Result<Database, StoreError> {
        let (jobs, incoming) = mpsc::unbounded_channel();
        let (waiters, waiting) = mpsc::unbounded_channel();
        let (ready, told) = std_mpsc::channel();
        let (address, fences, kept) = (postgres.clone(), waiters.clone(), inner.clone());
        let run = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(e) => return drop(ready.send(Err(io(e)))),
            };
            runtime.block_on(async {
                match begin(&address, nodes, inner.clone()).await {
                    Err(e) => drop(ready.send(Err(e))),
                    Ok((lanes, follower)) => {
                        let _ = ready.send(Ok(()));
                        let planner = Planner { inner, fences, lanes, waiting: VecDeque::new() };
                        tokio::join!(planner.run(incoming), follower.follow(waiting));
                    }
                }
            });
        };
        let thread = thread::Builder::new().name("database".into()).spawn(run).map_err(io)?;
        told.recv().map_err(|_| io("the thread of the database ended"))??;
        Ok(Database {
            inner: kept,
            postgres: postgres.clone(),
            jobs: Mutex::new(Some(jobs)),
            waiters: Mutex::new(Some(waiters)),
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(crate) fn submit(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.closed()) }
    }

    /// Why the thread does not answer.
    fn closed(&self) -> StoreError {
        let broken = self.inner.vitals.check().err();
        broken.unwrap_or_else(|| StoreError::Busy("the store is closed".into()))
    }

    /// Returns when the copy has everything that was acknowledged before this call, by any node.
    pub(crate) async fn fence(&self) -> Result<(), StoreError> {
        self.wait(Waiter::new(Vec::new())).await
    }

    async fn wait(&self, (waiter, told): (Waiter, Told)) -> Result<(), StoreError> {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waiters.and_then(|waiters| waiters.send(waiter).ok()).ok_or_else(|| self.closed())?;
        told.await.map_err(|_| self.closed())?
    }

    /// Puts rows into the empty database and into the copy, all or none.
    pub(crate) fn load(
        &self,
        chunks: &mut (dyn Iterator<Item = Result<Writes, StoreError>> + Send),
    ) -> Result<(), StoreError> {
        let load = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
            runtime.block_on(async {
                let mut connection = Connection::new(&self.postgres);
                fill::load(&mut connection, &self.postgres.schema, chunks).await?;
                self.wait(Waiter::for_a_filled_copy()).await
            })
        };
        // A thread of its own, because the caller may be within a runtime.
        thread::scope(|scope| scope.spawn(load).join())
            .unwrap_or_else(|_| Err(io("the rows could not be loaded")))
    }

    /// Writes the changes that were submitted, then ends the thread.
    pub(crate) fn stop(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            join(thread);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn begin(
    postgres: &Postgres,
    nodes: Nodes,
    inner: Arc<Inner>,
) -> Result<(Vec<Lane>, Follower), StoreError> {
    let mut connection = Connection::new(postgres);
    schema::prepare(&mut connection, &postgres.schema).await?;
    let node = schema::register(&mut connection, nodes).await?;
    let heads = fill::copy(&inner, &mut connection, &postgres.schema).await?;
    let lanes = (0..LANES).map(|number| Lane::new(Connection::new(postgres), node, number));
    let lanes = lanes.collect();
    Ok((lanes, Follower { inner, connection, schema: postgres.schema.clone(), node, heads }))
}

/// A change that waits, and how often it was planned in vain.
struct Waiting {
    job: Job,
    tries: u32,
}

/// Plans batches and gives them to lanes that are free.
struct Planner {
    inner: Arc<Inner>,
    fences: mpsc::UnboundedSender<Waiter>,
    lanes: Vec<Lane>,
    waiting: VecDeque<Waiting>,
}

/// What a lane gives back when its batch has ended.
struct Ended {
    lane: Lane,
    /// The keys that no other batch could use meanwhile.
    touched: HashSet<Vec<u8>>,
    /// The changes that must be planned anew.
    again: Vec<Waiting>,
}

impl Planner {
    async fn run(mut self, mut incoming: mpsc::UnboundedReceiver<Job>) {
        let (mut under_way, mut busy, mut open) = (FuturesUnordered::new(), HashSet::new(), true);
        while open || !self.waiting.is_empty() || !under_way.is_empty() {
            tokio::select! {
                job = incoming.recv(), if open => match job {
                    Some(job) => self.waiting.push_back(Waiting { job, tries: 0 }),
                    None => open = false,
                },
                Some(Ended { lane, touched, again }) = under_way.next() => {
                    self.lanes.push(lane);
                    busy.retain(|key| !touched.contains(key));
                    again.into_iter().rev().for_each(|job| self.waiting.push_front(job));
                }
            }
            while let Ok(job) = incoming.try_recv() {
                self.waiting.push_back(Waiting { job, tries: 0 });
            }
            while let Some(lane) = self.lanes.pop() {
                let (taken, touched) = self.take(&busy);
                if taken.is_empty() {
                    self.lanes.push(lane);
                    break;
                }
                busy.extend(touched.iter().cloned());
                under_way.push(self.write(lane, taken, touched));
            }
        }
    }

    /// Takes the changes of the next batch: those that share no row with a batch under way or with a change
    /// before them that must wait.
    fn take(&mut self, busy: &HashSet<Vec<u8>>) -> (Vec<Waiting>, HashSet<Vec<u8>>) {
        let (mut taken, mut touched, mut bytes) = (Vec::new(), HashSet::new(), 0);
        let (mut left, mut blocked) = (VecDeque::new(), HashSet::new());
        while let Some(next) = self.waiting.pop_front() {
            if taken.len() == LARGEST_BATCH || bytes >= LARGEST_BATCH_BYTES {
                self.waiting.push_front(next);
                break;
            }
            let keys: Vec<_> = next.job.change.touches().collect();
            if keys.iter().any(|key| busy.contains(key) || blocked.contains(key)) {
                blocked.extend(keys);
                left.push_back(next);
            } else {
                bytes += next.job.change.bytes();
                touched.extend(keys);
                taken.push(next);
            }
        }
        left.into_iter().rev().for_each(|job| self.waiting.push_front(job));
        (taken, touched)
    }

    /// Plans a batch at once, and writes it on a lane.
    fn write(
        &self,
        mut lane: Lane,
        taken: Vec<Waiting>,
        touched: HashSet<Vec<u8>>,
    ) -> impl Future<Output = Ended> + use<> {
        let inner = self.inner.clone();
        let fences = self.fences.clone();
        let begun = Instant::now();
        let checked = inner.vitals.check();
        let mut batch = Batch::with_reads(&inner);
        let verdicts: Vec<_> = taken
            .iter()
            .map(|waiting| checked.clone().and_then(|()| batch.add(waiting.job.change.clone())))
            .collect();
        let (writes, seen, reads) = batch.into_parts();
        let rows = Rowset::new(writes, reads);
        async move {
            let ended = |lane, again| Ended { lane, touched, again };
            if rows.is_empty() {
                answer(&inner, taken, verdicts);
                return ended(lane, Vec::new());
            }
            let written = lane.write(&rows).await;
            match written {
                Ok(written @ (Written::Whole | Written::Conflict)) => {
                    let (waiter, told) = Waiter::new(seen);
                    let _ = fences.send(waiter);
                    let fenced = told.await.unwrap_or(Ok(()));
                    if matches!(written, Written::Conflict) {
                        let (again, taken, verdicts) = sort_out(taken, verdicts, &fenced);
                        answer(&inner, taken, verdicts);
                        return ended(lane, again);
                    }
                    inner.vitals.took(begun.elapsed());
                    match fenced {
                        Ok(()) => answer(&inner, taken, verdicts),
                        // It is written, but the caller would not see it.
                        Err(e) => refuse(&inner, taken, verdicts, &io(e)),
                    }
                }
                Ok(Written::Forgotten) => {
                    inner.vitals.needs_new_copy(GIVEN_UP);
                    refuse(&inner, taken, verdicts, &StoreError::Busy(GIVEN_UP.into()));
                }
                Err(e) => refuse(&inner, taken, verdicts, &e),
            }
            ended(lane, Vec::new())
        }
    }
}

type Verdicts = Vec<Result<(), StoreError>>;

/// After a conflict: the changes that are planned anew, and those that have their verdict.
fn sort_out(
    taken: Vec<Waiting>,
    verdicts: Verdicts,
    fenced: &Result<(), StoreError>,
) -> (Vec<Waiting>, Vec<Waiting>, Verdicts) {
    let (mut again, mut over, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for (mut waiting, verdict) in taken.into_iter().zip(verdicts) {
        waiting.tries += 1;
        let verdict = match (verdict, fenced) {
            (Err(refused), _) => Err(refused),
            (Ok(()), Err(e)) => Err(e.clone()),
            (Ok(()), Ok(())) if waiting.tries < MOST_TRIES => {
                again.push(waiting);
                continue;
            }
            (Ok(()), Ok(())) => Err(StoreError::Busy("other nodes change the same records".into())),
        };
        over.push(waiting);
        told.push(verdict);
    }
    (again, over, told)
}

fn refuse(inner: &Inner, taken: Vec<Waiting>, verdicts: Verdicts, why: &StoreError) {
    let verdicts = verdicts.into_iter().map(|verdict| verdict.and(Err(why.clone()))).collect();
    answer(inner, taken, verdicts);
}

fn answer(inner: &Inner, taken: Vec<Waiting>, verdicts: Verdicts) {
    inner.vitals.dequeue(taken.len() as u64);
    for (Waiting { job, .. }, verdict) in taken.into_iter().zip(verdicts) {
        if let Some(done) = job.done {
            let _ = done.send(verdict);
        }
    }
}
