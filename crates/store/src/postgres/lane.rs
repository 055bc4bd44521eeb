//! A lane: one connection on which batches are written one after the other, each with a number.

use super::connection::{Connection, Failed, pause};
use crate::{StoreError, batch::Reads, keys, record::version_of, rows::Writes};
use std::time::{Duration, Instant};
use tokio_postgres::{
    error::SqlState,
    types::{ToSql, Type},
};

/// How long a batch of which no answer came is looked for, before its callers are told that it is uncertain.
const SETTLES: Duration = Duration::from_secs(10);

pub(super) struct Lane {
    connection: Connection,
    node: i32,
    number: i16,
    /// The number of the last batch that was written or given up.
    last: i64,
    /// The number of a batch of which nobody knows yet whether it was written.
    in_doubt: Option<i64>,
}

/// What became of a batch.
pub(super) enum Written {
    Whole,
    /// What it depends on is not so, and nothing was written.
    Conflict,
    /// The database has given up this node.
    Forgotten,
}

impl Lane {
    pub(super) fn new(connection: Connection, node: i32, number: i16) -> Lane {
        Lane { connection, node, number, last: 0, in_doubt: None }
    }

    /// Writes a batch, or nothing of it. [`StoreError::Io`] if it is not known which.
    pub(super) async fn write(&mut self, batch: &Rowset) -> Result<Written, StoreError> {
        let begun = Instant::now();
        self.settle_earlier(begun).await?;
        loop {
            let seq = self.last + 1;
            match self.send(batch, seq).await {
                Ok(false) => return Ok(Written::Conflict),
                Ok(true) => {
                    // Without a row there is no entry in the feed, and the number is free.
                    self.last = if batch.writes_nothing() { self.last } else { seq };
                    return Ok(Written::Whole);
                }
                Err(Failed::Refused(state, why)) => return refused(&state, why),
                Err(Failed::NotSent(why)) => {
                    if begun.elapsed() > SETTLES {
                        return Err(StoreError::Unreachable(why));
                    }
                    pause().await;
                }
                Err(Failed::Unknown(_)) if batch.writes_nothing() => {}
                Err(Failed::Unknown(why)) => {
                    tracing::warn!(why, "no answer to a batch of changes: looking for it");
                    self.in_doubt = Some(seq);
                    if self.settle(seq, begun).await? {
                        return Ok(Written::Whole);
                    }
                }
            }
        }
    }

    /// Learns what became of a batch whose callers were told that it is uncertain.
    async fn settle_earlier(&mut self, begun: Instant) -> Result<(), StoreError> {
        let Some(seq) = self.in_doubt else { return Ok(()) };
        match self.settle(seq, begun).await {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::Unreachable("the database does not answer".into())),
        }
    }

    /// Whether the batch of this number was written. If it was not, it never will be.
    async fn settle(&mut self, seq: i64, begun: Instant) -> Result<bool, StoreError> {
        loop {
            let of: [(&(dyn ToSql + Sync), Type); 3] =
                [(&self.node, Type::INT4), (&self.number, Type::INT2), (&seq, Type::INT8)];
            let asked = self.connection.query("select {schema}.settle($1, $2, $3)", &of);
            let why = match asked.await {
                Ok(rows) => {
                    let written = rows.first().is_some_and(|row| row.get(0));
                    tracing::warn!(written, "the batch of changes without an answer was found");
                    (self.last, self.in_doubt) = (seq, None);
                    return Ok(written);
                }
                Err(Failed::NotSent(why) | Failed::Unknown(why) | Failed::Refused(_, why)) => why,
            };
            if begun.elapsed() > SETTLES {
                return Err(StoreError::Io(why));
            }
            pause().await;
        }
    }

    async fn send(&mut self, batch: &Rowset, seq: i64) -> Result<bool, Failed> {
        let Rowset { read, absent, set, gone } = batch;
        let rows = self
            .connection
            .query(
                "select {schema}.apply_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                &[
                    (&self.node, Type::INT4),
                    (&self.number, Type::INT2),
                    (&seq, Type::INT8),
                    (&read.keys, Type::BYTEA_ARRAY),
                    (&read.versions, Type::INT8_ARRAY),
                    (&read.written, Type::BOOL_ARRAY),
                    (absent, Type::BYTEA_ARRAY),
                    (&set.keys, Type::BYTEA_ARRAY),
                    (&set.versions, Type::INT8_ARRAY),
                    (&set.values, Type::BYTEA_ARRAY),
                    (&set.hows, Type::INT2_ARRAY),
                    (gone, Type::BYTEA_ARRAY),
                ],
            )
            .await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}

/// What a refusal of the database means for the batch, of which nothing was written.
fn refused(state: &SqlState, why: String) -> Result<Written, StoreError> {
    let of_others = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    if of_others.contains(state) {
        return Ok(Written::Conflict);
    }
    if state.code() == "SV001" {
        return Ok(Written::Forgotten);
    }
    tracing::error!(why, "the database refused a batch of changes");
    Err(match Failed::Refused(state.clone(), why).told() {
        StoreError::Io(why) => StoreError::Busy(why),
        other => other,
    })
}

/// A batch as the function `apply_batch` takes it. See `schema.sql`.
#[derive(Default)]
pub(super) struct Rowset {
    read: Read,
    absent: Vec<Vec<u8>>,
    set: Set,
    gone: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Read {
    keys: Vec<Vec<u8>>,
    versions: Vec<i64>,
    written: Vec<bool>,
}

#[derive(Default)]
struct Set {
    keys: Vec<Vec<u8>>,
    versions: Vec<i64>,
    values: Vec<Vec<u8>>,
    hows: Vec<i16>,
}

impl Rowset {
    pub(super) fn new(writes: Writes, reads: Reads) -> Rowset {
        let mut set = Rowset::default();
        let mut reads: Vec<_> = reads.into_iter().collect();
        reads.sort_unstable();
        let how = |key: &[u8]| {
            let found = reads.binary_search_by(|(read, _)| read.as_slice().cmp(key));
            found
                .ok()
                .and_then(|at| reads.get(at))
                .map_or(0, |(_, version)| 1 + i16::from(*version > 0))
        };
        let is_written: Vec<_> = reads.iter().map(|(key, _)| writes.contains_key(key)).collect();
        let mut writes: Vec<_> = writes.into_iter().collect();
        writes.sort_unstable();
        for (key, value) in writes {
            match value {
                Some(value) => {
                    set.set.hows.push(how(&key));
                    set.set.versions.push(version(&key, &value));
                    set.set.keys.push(key);
                    set.set.values.push(value);
                }
                None => set.gone.push(key),
            }
        }
        for ((key, version), written) in reads.into_iter().zip(is_written) {
            match i64::try_from(version) {
                Ok(0) => set.absent.push(key),
                version => {
                    set.read.keys.push(key);
                    set.read.versions.push(version.unwrap_or(i64::MAX));
                    set.read.written.push(written);
                }
            }
        }
        set
    }

    fn writes_nothing(&self) -> bool {
        self.set.keys.is_empty() && self.gone.is_empty()
    }

    /// Whether there is nothing to write and nothing to check.
    pub(super) fn is_empty(&self) -> bool {
        self.writes_nothing() && self.read.keys.is_empty() && self.absent.is_empty()
    }
}

/// The version of a row: that of a record, 1 for a claim, 0 for an index entry.
pub(super) fn version(key: &[u8], value: &[u8]) -> i64 {
    if keys::is_of_index(key) {
        0
    } else if keys::is_of_claims(key) {
        1
    } else {
        i64::try_from(version_of(Some(value))).unwrap_or(i64::MAX)
    }
}
