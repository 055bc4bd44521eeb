//! PostgreSQL as the truth, and a copy of its rows on this machine, which is read without asking.
//!
//! A change is planned on the copy and sent with a stamp of each row that it depends on. The database
//! writes it only if they are still so. The same transaction adds the keys to a feed, and a change is
//! acknowledged once the copy has it. See `docs/decisions/0024-postgresql-judges.md`.

mod address;
mod connection;
mod exchange;
mod fill;
mod follower;
mod heads;
mod heart;
mod lane;
mod planner;
mod schema;

pub use address::Postgres;

use crate::{Inner, StoreError, committer::Job, io, join, rows::Writes, vitals::Vitals};
use connection::Connection;
use follower::{Follower, Over, Waiter};
use heads::LANES;
use heart::Heart;
use lane::Lane;
use planner::Planner;
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc},
    thread,
};
use tokio::sync::{mpsc, watch};

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
        let (ready, told) = std_mpsc::sync_channel(1);
        let (address, fences, kept) = (postgres.clone(), waiters.clone(), inner.clone());
        let run = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(e) => return drop(ready.send(Err(io(e)))),
            };
            let failed = |vitals: &Vitals| {
                vitals.needs_new_copy("the thread that speaks with the database failed");
            };
            let serve = serve(&address, nodes, &inner, ready, (fences, incoming, waiting));
            inner.vitals.guard(failed, || runtime.block_on(serve));
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
        self.wait(Waiter::new()).await
    }

    async fn wait(&self, (waiter, over): (Waiter, Over)) -> Result<(), StoreError> {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waiters.and_then(|waiters| waiters.send(waiter).ok()).ok_or_else(|| self.closed())?;
        over.await.map_err(|_| self.closed())?
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
                fill::load(&mut connection, &self.postgres, chunks).await?;
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

type Channels =
    (mpsc::UnboundedSender<Waiter>, mpsc::UnboundedReceiver<Job>, mpsc::UnboundedReceiver<Waiter>);

/// Speaks with the database until the store is closed. Tells when the copy is filled, or why it is not.
async fn serve(
    postgres: &Postgres,
    nodes: Nodes,
    inner: &Arc<Inner>,
    ready: std_mpsc::SyncSender<Result<(), StoreError>>,
    (fences, incoming, waiting): Channels,
) {
    let mut connection = Connection::new(postgres);
    let node = async {
        schema::prepare(&mut connection, postgres).await?;
        schema::register(&mut connection, nodes).await
    };
    let node = match node.await {
        Ok(node) => node,
        Err(e) => return drop(ready.send(Err(e))),
    };
    let (serves, told) = watch::channel(false);
    let heart = Heart::new(inner.clone(), postgres, (node.clone(), nodes), fences.downgrade());
    let bulletins = async {
        if nodes == Nodes::Several {
            exchange::exchange(inner.clone(), postgres.clone(), node.clone(), told.clone()).await;
        }
    };
    let heart = heart.beat(told.clone());
    let work = async {
        // When it is dropped, the heart stands still.
        let serves = serves;
        let heads = match fill::copy(inner, &mut connection, postgres).await {
            Ok(heads) => heads,
            Err(e) => return drop(ready.send(Err(e))),
        };
        let _ = ready.send(Ok(()));
        serves.send_replace(true);
        let lane = |number| Lane::new(Connection::new(postgres), node.clone(), number);
        let planner = Planner::new(inner.clone(), fences, (0..LANES).map(lane).collect());
        let (inner, postgres) = (inner.clone(), postgres.clone());
        let follower = Follower { inner, connection, postgres, node: node.clone(), heads };
        tokio::join!(planner.run(incoming), follower.follow(waiting));
    };
    tokio::join!(work, heart, bulletins);
}
