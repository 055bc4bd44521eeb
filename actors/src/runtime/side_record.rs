//! A side record: what the service keeps beside its resources, such as sessions, lines of logs and the audit
//! log.

use super::{entries::Deadline, store::Store};
use contract::{Fault, Timestamp};
use store::{Change, Claims, Entries, Record};

/// A record that is not a resource: nobody owns it. The table of side records declares its name and its
/// key, and makes it a [`Record`].
pub trait SideRecord: Record<Content = Self> {
    /// What removes the record.
    fn end(&self) -> End;

    /// The object that the key names. The record seals its secrets for it.
    fn named_by(key: &Self::Key) -> String {
        key.to_string()
    }

    /// The index entries, without the one by which the sweeper finds the record.
    fn index(&self) -> Entries<Self> {
        Entries::default()
    }

    /// The unique values of the record.
    fn claims(&self) -> Claims<Self> {
        Claims::default()
    }
}

/// What removes a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The end of the resource with this id.
    With(String),
    /// The end of the resource that the key names.
    WithKey,
    /// The sweeper, at this time.
    At(Timestamp),
    /// Whoever needs it last.
    WhenUsed,
    /// The retention, after the record was archived.
    Archived,
    /// Nothing: there is one such record.
    Never,
}

impl End {
    fn time(&self) -> Option<Timestamp> {
        match self {
            End::At(time) => Some(*time),
            End::With(_) | End::WithKey | End::WhenUsed | End::Archived | End::Never => None,
        }
    }
}

/// The index entries of a side record: its own, and the one that the sweeper uses.
pub(crate) fn entries<R: SideRecord>(record: &R) -> Entries<R> {
    SideRecord::index(record).and_all(record.end().time().map(Deadline))
}

/// Removes the expired records of a kind.
pub(crate) async fn forget_expired<R: SideRecord>(
    store: &Store,
    now: Timestamp,
) -> Result<(), Fault> {
    for found in store.before::<R>(&Deadline(now)) {
        let (key, seen) = found?;
        if seen.end().time().is_some_and(|time| time <= now) {
            match store.commit(Change::new().remove::<R>(&key, &seen)).await {
                // The record changed meanwhile and expires later.
                Ok(()) | Err(Fault::Stale) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}
