//! Who writes: the thread of this process, or the database.

use crate::{
    Inner, StoreError,
    committer::{Committer, Job},
    postgres::Database,
    rows::Writes,
};
use std::sync::Arc;

/// What makes the changes of a store durable. Clones share it.
#[derive(Clone)]
pub(crate) enum Writer {
    /// The rows are the truth, and only this process has them.
    Here(Arc<Committer>),
    /// A database has the truth, and the rows are a copy.
    Database(Arc<Database>),
}

impl Writer {
    /// Takes a change, unless too many wait.
    pub(crate) fn submit(&self, inner: &Inner, job: Job) -> Result<(), StoreError> {
        inner.vitals.enqueue()?;
        let taken = match self {
            Writer::Here(committer) => committer.submit(job),
            Writer::Database(database) => database.submit(job),
        };
        taken.inspect_err(|_| inner.vitals.dequeue(1))
    }

    /// Returns when readers see what was acknowledged before. Here, they see it a moment before that.
    pub(crate) async fn fence(&self) -> Result<(), StoreError> {
        match self {
            Writer::Here(_) => Ok(()),
            Writer::Database(database) => database.fence().await,
        }
    }

    /// Fills an empty store.
    pub(crate) fn load(
        &self,
        inner: &Inner,
        chunks: &mut (dyn Iterator<Item = Result<Writes, StoreError>> + Send),
    ) -> Result<(), StoreError> {
        match self {
            Writer::Here(_) => {
                for rows in chunks {
                    inner.rows()?.apply(rows?)?;
                }
                inner.rows()?.flush()
            }
            Writer::Database(database) => database.load(chunks),
        }
    }

    /// Writes the submitted changes, and refuses later ones.
    pub(crate) fn stop(&self) {
        match self {
            Writer::Here(committer) => committer.stop(),
            Writer::Database(database) => database.stop(),
        }
    }
}
