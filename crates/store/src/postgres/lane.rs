//! A lane: one connection on which batches are written one after the other, each with a number.

use super::{
    connection::{Connection, Failed, LEASE_WAS_LOST, NODE_WAS_GIVEN_UP, pause},
    schema::Node,
};
use crate::{
    Lease, StoreError,
    batch::{Reads, stamp},
    keys,
    rows::Writes,
};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use tokio_postgres::{
    error::SqlState,
    types::{ToSql, Type},
};

/// How long a batch of which no answer came is looked for, before its callers are told that it is uncertain.
const SETTLES: Duration = Duration::from_secs(10);

pub(super) struct Lane {
    connection: Connection,
    node: Node,
    number: i16,
    /// The number of the last batch that was written or given up.
    last: i64,
    /// The number of a batch of which nobody knows yet whether it was written.
    in_doubt: Option<i64>,
}

/// A batch of a lane, by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastSeq {
    pub(super) node: i32,
    pub(super) lane: i16,
    pub(super) seq: i64,
}

/// What became of a batch.
pub(super) enum Written {
    /// All of it. Where rows were written, the number of the batch that the copy must have.
    Whole(Option<LastSeq>),
    /// What it depends on is not so, and nothing was written.
    Conflict,
    /// Another node holds one of the leases that it is under, and nothing was written.
    NotHeld,
    /// The database has given up this node.
    Forgotten,
}

impl Lane {
    pub(super) fn new(connection: Connection, node: Node, number: i16) -> Lane {
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
                    if batch.writes_nothing() {
                        return Ok(Written::Whole(None));
                    }
                    self.last = seq;
                    return Ok(self.whole());
                }
                Err(Failed::Refused(state, why)) => return refused(&state, why),
                Err(Failed::Unknown(why)) if !batch.writes_nothing() => {
                    tracing::warn!(why, "no answer to a batch of changes: looking for it");
                    self.in_doubt = Some(seq);
                    if self.settle(seq, begun).await? {
                        return Ok(self.whole());
                    }
                    if begun.elapsed() > SETTLES {
                        return Err(StoreError::Unreachable(why));
                    }
                }
                Err(Failed::NotSent(why) | Failed::Unknown(why)) => {
                    if begun.elapsed() > SETTLES {
                        return Err(StoreError::Unreachable(why));
                    }
                    pause().await;
                }
            }
        }
    }

    fn whole(&self) -> Written {
        Written::Whole(Some(LastSeq { node: self.node.id, lane: self.number, seq: self.last }))
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
            let of: [(&(dyn ToSql + Sync), Type); 4] = [
                (&self.node.id, Type::INT4),
                (&self.node.token, Type::TEXT),
                (&self.number, Type::INT2),
                (&seq, Type::INT8),
            ];
            let asked = self.connection.query("select {schema}.settle($1, $2, $3, $4)", &of);
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
        let Rowset { read, absent, set, gone, leases } = batch;
        let rows = self
            .connection
            .query(
                "select {schema}.apply_batch(
                    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
                &[
                    (&self.node.id, Type::INT4),
                    (&self.node.token, Type::TEXT),
                    (&self.number, Type::INT2),
                    (&seq, Type::INT8),
                    (&read.keys, Type::BYTEA_ARRAY),
                    (&read.stamps, Type::INT8_ARRAY),
                    (&read.written, Type::BOOL_ARRAY),
                    (absent, Type::BYTEA_ARRAY),
                    (&set.keys, Type::BYTEA_ARRAY),
                    (&set.stamps, Type::INT8_ARRAY),
                    (&set.values, Type::BYTEA_ARRAY),
                    (&set.known, Type::INT2_ARRAY),
                    (gone, Type::BYTEA_ARRAY),
                    (&leases.shards, Type::INT2_ARRAY),
                    (&leases.epochs, Type::INT8_ARRAY),
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
    ];
    if of_others.contains(state) {
        return Ok(Written::Conflict);
    }
    match state.code() {
        NODE_WAS_GIVEN_UP => return Ok(Written::Forgotten),
        LEASE_WAS_LOST => return Ok(Written::NotHeld),
        _ => {}
    }
    tracing::error!(why, "the database refused a batch of changes");
    Err(Failed::Refused(state.clone(), why).told())
}

/// A batch as the function `apply_batch` takes it. See `schema.sql`.
#[derive(Default)]
pub(super) struct Rowset {
    read: Read,
    absent: Vec<Vec<u8>>,
    set: Set,
    gone: Vec<Vec<u8>>,
    leases: HeldLeases,
}

#[derive(Default)]
struct Read {
    keys: Vec<Vec<u8>>,
    stamps: Vec<i64>,
    written: Vec<bool>,
}

#[derive(Default)]
struct Set {
    keys: Vec<Vec<u8>>,
    stamps: Vec<i64>,
    values: Vec<Vec<u8>>,
    known: Vec<i16>,
}

#[derive(Default)]
struct HeldLeases {
    shards: Vec<i16>,
    epochs: Vec<i64>,
}

impl Rowset {
    pub(super) fn new(writes: Writes, reads: Reads, leases: &HashSet<Lease>) -> Rowset {
        let mut set = Rowset::default();
        let mut leases: Vec<_> = leases.iter().collect();
        leases.sort_unstable();
        for lease in leases {
            set.leases.shards.push(lease.shard.number());
            set.leases.epochs.push(lease.epoch);
        }
        let mut reads: Vec<_> = reads.into_iter().collect();
        reads.sort_unstable();
        let known = |key: &[u8]| {
            let found = reads.binary_search_by(|(read, _)| read.as_slice().cmp(key)).ok();
            match found.and_then(|at| reads.get(at)) {
                None => Known::Nothing,
                Some((_, 0)) => Known::Absent,
                Some(_) => Known::There,
            }
        };
        let is_written: Vec<_> = reads.iter().map(|(key, _)| writes.contains_key(key)).collect();
        let mut writes: Vec<_> = writes.into_iter().collect();
        writes.sort_unstable();
        for (key, value) in writes {
            match value {
                Some(value) => {
                    set.set.known.push(known(&key) as i16);
                    set.set.stamps.push(stamp_of(&key, &value));
                    set.set.keys.push(key);
                    set.set.values.push(value);
                }
                None => set.gone.push(key),
            }
        }
        for ((key, stamp), written) in reads.into_iter().zip(is_written) {
            if stamp == 0 {
                set.absent.push(key);
            } else {
                set.read.keys.push(key);
                set.read.stamps.push(stamp);
                set.read.written.push(written);
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

/// What is known of a row that is set, before the batch.
#[derive(Clone, Copy)]
enum Known {
    Nothing = 0,
    Absent = 1,
    There = 2,
}

/// The stamp of a row; 0 for an index entry, which nobody depends on.
pub(super) fn stamp_of(key: &[u8], value: &[u8]) -> i64 {
    if keys::is_of_index(key) { 0 } else { stamp(Some(value)) }
}
