//! Why the store refuses.

/// Why the store refused a read or a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A record was written since the caller read it. Nothing of the change was written.
    #[error("{tree}/{key} changed since it was read")]
    Stale {
        /// The kind of the record, [`Record::TREE`](crate::Record::TREE).
        tree: &'static str,
        /// The key of the record, as text.
        key: String,
    },
    /// Another record holds a unique value. Nothing of the change was written.
    #[error("{claim} is taken")]
    Taken {
        /// The claim as [`Record::claims`](crate::Record::claims) spells it.
        claim: String,
    },
    /// Another process acts for these ids now. Nothing of the change was written.
    #[error("another node acts for this object now")]
    NotHeld,
    /// A record takes no such delta, for this reason. Nothing of the change was written.
    #[error("{0}")]
    Refused(String),
    /// A newer version of the program wrote the record, the record is damaged, or the disk did not
    /// return it.
    #[error("{0}")]
    Unreadable(String),
    /// JSON cannot hold the record. Nothing of the change was written.
    #[error("{0}")]
    Unwritable(String),
    /// Another process has the directory open.
    #[error("{0}")]
    InUse(String),
    /// A file of the store is not what was written, and acknowledged changes would be missing. The
    /// message names the file, what is not affected, and the command that goes on.
    #[error("{0}")]
    Damaged(String),
    /// The store takes no changes: its queue is full, it is closed, or an earlier write failed.
    /// Nothing of the change was written. Reads return this only after a batch was written in part.
    #[error("{0}")]
    Busy(String),
    /// The database does not answer. Nothing of the change was written.
    #[error("the database: {0}")]
    Unreachable(String),
    /// The disk has no room. Nothing of the change was written, and the store goes on when there is
    /// room again.
    #[error("the disk of the store is full: make room")]
    NoRoom,
    /// The disk refused, or the database did not answer. Whether the change is on the disk is unknown.
    #[error("the store's disk: {0}")]
    Io(String),
}

pub(crate) fn io(e: impl std::fmt::Display) -> StoreError {
    StoreError::Io(e.to_string())
}

pub(crate) fn read_failed(e: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable(format!("the store's disk: {e}"))
}
