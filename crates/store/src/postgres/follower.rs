//! Keeps the copy of the rows up to date, and tells those who wait when it is.

use super::{
    address::Postgres,
    connection::{COPY_IS_USELESS, Connection, Failed, pause},
    fill,
    heads::{Head, Heads, Read},
    lane::LastSeq,
    schema::Node,
};
use crate::{
    Inner, StoreError, batch::Seen, cache::Cached, others::row_of_record, record::version_of,
    rows::Writes,
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

/// How often the copy is brought up to date while nobody waits for it.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// How long readers wait for a database that does not answer: as long as it takes to fail over.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often the lanes of nodes that were given up are forgotten.
const FORGETS_EVERY: Duration = Duration::from_secs(60);
/// What operators read of a node that the database has given up.
pub(super) const GIVEN_UP: &str = "the database has given up this node, which was silent for long";

/// Somebody who waits until the copy holds all that was written before.
pub(super) struct Waiter {
    /// The records that the waiter has written, for the cache.
    seen: Vec<Seen>,
    /// The batch that the waiter has written, and which the copy must have.
    written: Option<LastSeq>,
    /// The copy, which is empty, must be filled first: rows were loaded that are not in the feed.
    fill: bool,
    done: oneshot::Sender<Result<(), StoreError>>,
    since: Instant,
}

/// Where the waiter learns that the wait is over.
pub(super) type Over = oneshot::Receiver<Result<(), StoreError>>;

impl Waiter {
    pub(super) fn new() -> (Waiter, Over) {
        let (done, over) = oneshot::channel();
        let since = Instant::now();
        (Waiter { seen: Vec::new(), written: None, fill: false, done, since }, over)
    }

    pub(super) fn for_own_batch(seen: Vec<Seen>, written: Option<LastSeq>) -> (Waiter, Over) {
        let (waiter, over) = Waiter::new();
        (Waiter { seen, written, ..waiter }, over)
    }

    pub(super) fn for_a_filled_copy() -> (Waiter, Over) {
        let (waiter, over) = Waiter::new();
        (Waiter { fill: true, ..waiter }, over)
    }
}

pub(super) struct Follower {
    pub(super) inner: Arc<Inner>,
    pub(super) connection: Connection,
    pub(super) postgres: Postgres,
    pub(super) node: Node,
    pub(super) heads: Heads,
}

/// Why the copy is not up to date.
enum Behind {
    /// The database does not answer: the next look may succeed.
    Unreachable(String),
    /// The copy can never be what the database holds: it must be filled anew.
    Useless(String),
}

impl From<Failed> for Behind {
    fn from(failed: Failed) -> Behind {
        match failed {
            Failed::Refused(state, why) if state.code() == COPY_IS_USELESS => Behind::Useless(why),
            Failed::NotSent(why) | Failed::Refused(_, why) | Failed::Unknown(why) => {
                Behind::Unreachable(why)
            }
        }
    }
}

impl Follower {
    /// Follows the feed until nobody can wait any more.
    pub(super) async fn follow(mut self, mut waiters: mpsc::UnboundedReceiver<Waiter>) {
        let mut waiting: Vec<Waiter> = Vec::new();
        let mut forgot = Instant::now();
        loop {
            if waiting.is_empty() {
                match timeout(LOOKS_EVERY, waiters.recv()).await {
                    Ok(Some(first)) => waiting.push(first),
                    Ok(None) => return,
                    Err(_) => {}
                }
            }
            while let Ok(next) = waiters.try_recv() {
                waiting.push(next);
            }
            let fill = waiting.iter_mut().any(|waiter| std::mem::take(&mut waiter.fill));
            let seen = waiting.iter_mut().flat_map(|waiter| std::mem::take(&mut waiter.seen));
            let seen = seen.map(|seen| (seen.row, seen.cached)).collect();
            let looked = if fill { self.fill().await } else { self.look(seen).await };
            match looked.and_then(|()| self.has_own_batches(&waiting)) {
                Ok(()) => {
                    self.inner.vitals.answers();
                    waiting.drain(..).for_each(|waiter| drop(waiter.done.send(Ok(()))));
                }
                Err(Behind::Unreachable(why)) => {
                    let silent = self.inner.vitals.does_not_answer(&why);
                    let patience = if silent > PATIENCE { Duration::ZERO } else { PATIENCE };
                    give_up(&mut waiting, patience, &why);
                    pause().await;
                    continue;
                }
                Err(Behind::Useless(why)) => {
                    self.inner.vitals.needs_new_copy(&why);
                    give_up(&mut waiting, Duration::ZERO, &why);
                    return;
                }
            }
            if forgot.elapsed() > FORGETS_EVERY {
                forgot = Instant::now();
                self.forget().await;
            }
        }
    }

    /// Fills the copy with all rows.
    async fn fill(&mut self) -> Result<(), Behind> {
        let filled = fill::copy(&self.inner, &mut self.connection, &self.postgres).await;
        self.heads = filled.map_err(|e| Behind::Useless(e.to_string()))?;
        Ok(())
    }

    /// A batch that was written and is not in the feed was written on another server: for a while after a
    /// failover, the old one may answer too. The next look opens a new connection.
    fn has_own_batches(&mut self, waiting: &[Waiter]) -> Result<(), Behind> {
        let mut written = waiting.iter().filter_map(|waiter| waiter.written);
        if written.all(|batch| self.heads.has(batch)) {
            return Ok(());
        }
        self.connection.close();
        Err(Behind::Unreachable("the server that answers is not the one that writes".into()))
    }

    /// Brings the copy up to date.
    async fn look(&mut self, mut seen: HashMap<Vec<u8>, Option<Cached>>) -> Result<(), Behind> {
        let rows = self.ask().await?;
        let (mut writes, mut entered) = (Writes::new(), Vec::new());
        let (mut lanes, mut is_known) = (Vec::new(), false);
        let (mut by_others, tells) = (Vec::new(), !self.inner.leases.are_all());
        for row in rows {
            match News::read(&row).map_err(|e| Behind::Useless(e.to_string()))? {
                News::Known => is_known = true,
                News::Lane(read) => lanes.push(read),
                News::Row { key, value } => {
                    let version = value.as_deref().map(|row| version_of(Some(row)));
                    let own = seen.remove(&key);
                    let is_own = own.is_some();
                    let is_wanted = own.as_ref().is_some_and(Option::is_some);
                    let cached =
                        own.flatten().filter(|cached| version == Some(cached.record.version()));
                    if tells && (!is_own || is_wanted && cached.is_none()) {
                        by_others.extend(row_of_record(&key));
                    }
                    entered.push(Seen { row: key.clone(), cached });
                    writes.insert(key, value);
                }
            }
        }
        if !is_known {
            return Err(Behind::Useless(GIVEN_UP.into()));
        }
        if !writes.is_empty() {
            self.inner.enter(writes, entered).map_err(|e| Behind::Useless(e.to_string()))?;
        }
        for row in by_others {
            // Nobody may be listening.
            let _ = self.inner.others.send(row);
        }
        lanes.into_iter().try_for_each(|read| self.heads.advance(read)).map_err(Behind::Useless)
    }

    async fn ask(&mut self) -> Result<Vec<Row>, Failed> {
        let columns = self.heads.columns();
        let params: [(&(dyn ToSql + Sync), Type); 7] = [
            (&self.node.id, Type::INT4),
            (&self.node.token, Type::TEXT),
            (&columns.nodes, Type::INT4_ARRAY),
            (&columns.lanes, Type::INT2_ARRAY),
            (&columns.seqs, Type::INT8_ARRAY),
            (&columns.marks, Type::INT8_ARRAY),
            (&self.heads.newest, Type::INT4),
        ];
        let sql = "select node, lane, first_seq, last_seq, last_mark, key, value
            from {schema}.news($1, $2, $3, $4, $5, $6, $7)";
        self.connection.query(sql, &params).await
    }

    /// Forgets the lanes of nodes that were given up: their batches are removed some minutes later.
    async fn forget(&mut self) {
        let sql = "select id from {schema}.nodes where token is not null";
        if let Ok(rows) = self.connection.query(sql, &[]).await {
            self.heads.keep(&rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>());
        }
    }
}

/// Answers those who have waited for longer than this.
fn give_up(waiting: &mut Vec<Waiter>, longest: Duration, why: &str) {
    let (late, rest): (Vec<_>, Vec<_>) =
        waiting.drain(..).partition(|waiter| waiter.since.elapsed() >= longest);
    *waiting = rest;
    for waiter in late {
        let _ = waiter.done.send(Err(StoreError::Unreachable(why.to_owned())));
    }
}

/// One line of the function `news`.
enum News {
    Known,
    Lane(Read),
    Row { key: Vec<u8>, value: Option<Vec<u8>> },
}

impl News {
    fn read(row: &Row) -> Result<News, tokio_postgres::Error> {
        if let Some(key) = row.try_get::<_, Option<Vec<u8>>>("key")? {
            return Ok(News::Row { key, value: row.try_get("value")? });
        }
        match row.try_get::<_, Option<i16>>("lane")? {
            None => Ok(News::Known),
            Some(lane) => Ok(News::Lane(Read {
                node: row.try_get("node")?,
                lane,
                first: row.try_get("first_seq")?,
                last: Head { seq: row.try_get("last_seq")?, mark: row.try_get("last_mark")? },
            })),
        }
    }
}
