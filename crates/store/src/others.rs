//! What other processes that share the rows did, for those who act on it.

use crate::{Inner, keys};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

/// Changes of others that may wait until they are looked at. Whoever lags further behind looks at everything.
const MOST_WAITING: usize = 4096;

/// Gets keys of records.
pub(crate) type Sender = broadcast::Sender<String>;

pub(crate) fn sender() -> Sender {
    broadcast::channel(MOST_WAITING).0
}

/// What other processes did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A record of this kind was written or removed.
    Record {
        /// [`Record::TREE`](crate::Record::TREE).
        kind: String,
        /// The key of the record, as text.
        key: String,
    },
    /// So many records were written that only some were told of.
    Many,
    /// This process got leases, or lost some.
    Leases,
}

/// Tells what other processes do, and seldom also what this one did. Where this one is alone, it tells nothing.
pub struct Others {
    records: broadcast::Receiver<String>,
    leases: watch::Receiver<u64>,
}

impl Others {
    pub(crate) fn new(inner: &Inner) -> Others {
        Others { records: inner.others.subscribe(), leases: inner.leases.changes() }
    }

    /// The next event.
    pub async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                Ok(()) = self.leases.changed() => return Event::Leases,
                told = self.records.recv() => match told {
                    Ok(row) => {
                        if let Some((kind, key)) = row.split_once('/') {
                            return Event::Record { kind: kind.to_owned(), key: key.to_owned() };
                        }
                    }
                    Err(RecvError::Lagged(_)) => return Event::Many,
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}

/// The key of a row as text, if it is the row of a record.
pub(crate) fn row_of_record(key: &[u8]) -> Option<String> {
    keys::is_of_record(key).then(|| String::from_utf8_lossy(key).into_owned())
}
