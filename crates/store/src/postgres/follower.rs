//! Keeps the copy of the rows up to date, and tells those who wait when it is.

use super::{
    connection::{Connection, Failed, pause},
    fill,
};
use crate::{Inner, StoreError, batch::Seen, cache::Cached, record::version_of, rows::Writes};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_postgres::{Row, types::Type};

/// How often the copy is brought up to date while nobody waits for it.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// How long readers wait for a database that does not answer: as long as it takes to fail over.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the node says that it lives.
const BEATS_EVERY: Duration = Duration::from_secs(1);
/// How often what nobody needs any more is removed.
const TRIMS_EVERY: Duration = Duration::from_secs(60);
/// For how long batches stay in the feed, and silent nodes in the list. A node that was away for longer fills
/// its copy anew.
const KEPT: &str = "10 minutes";
/// What operators read of a node that the database no longer lists.
pub(super) const GIVEN_UP: &str = "the database has given up this node, which was silent for long";
/// Lanes of one node.
pub(super) const LANES: i16 = 2;

/// The number of the last batch of each lane that is in the copy.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) lanes: BTreeMap<(i32, i16), i64>,
    /// The id of the newest node whose lanes are among them.
    pub(super) newest: i32,
}

impl Heads {
    /// Knows the lanes of all nodes up to this one.
    pub(super) fn know(&mut self, newest: i32) {
        for node in self.newest + 1..=newest {
            for lane in 0..LANES {
                self.lanes.entry((node, lane)).or_insert(0);
            }
        }
        self.newest = self.newest.max(newest);
    }
}

/// Somebody who waits until the copy holds all that was written before.
pub(super) struct Waiter {
    /// The records that the waiter has written, for the cache.
    seen: Vec<Seen>,
    /// The copy, which is empty, must be filled first: rows were loaded that are not in the feed.
    fill: bool,
    done: oneshot::Sender<Result<(), StoreError>>,
    since: Instant,
}

/// Who is told when the wait is over.
pub(super) type Told = oneshot::Receiver<Result<(), StoreError>>;

impl Waiter {
    pub(super) fn new(seen: Vec<Seen>) -> (Waiter, Told) {
        let (done, told) = oneshot::channel();
        (Waiter { seen, fill: false, done, since: Instant::now() }, told)
    }

    pub(super) fn for_a_filled_copy() -> (Waiter, Told) {
        let (waiter, told) = Waiter::new(Vec::new());
        (Waiter { fill: true, ..waiter }, told)
    }
}

pub(super) struct Follower {
    pub(super) inner: Arc<Inner>,
    pub(super) connection: Connection,
    pub(super) schema: String,
    pub(super) node: i32,
    pub(super) heads: Heads,
}

/// Why the copy is not up to date.
enum Behind {
    /// The database does not answer: the next look may succeed.
    Unreachable(String),
    /// The copy can never be what the database holds: it must be filled anew.
    Useless(String),
}

impl Follower {
    /// Follows the feed until nobody can wait any more.
    pub(super) async fn follow(mut self, mut waiters: mpsc::UnboundedReceiver<Waiter>) {
        let mut waiting: Vec<Waiter> = Vec::new();
        let (mut beat, mut trimmed) = (Instant::now(), Instant::now());
        loop {
            if waiting.is_empty() {
                match timeout(LOOKS_EVERY, waiters.recv()).await {
                    Ok(Some(first)) => waiting.push(first),
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
            while let Ok(next) = waiters.try_recv() {
                waiting.push(next);
            }
            let fill = waiting.iter_mut().any(|waiter| std::mem::take(&mut waiter.fill));
            let seen = waiting.iter_mut().flat_map(|waiter| std::mem::take(&mut waiter.seen));
            let seen = seen.map(|seen| (seen.row, seen.cached)).collect();
            let done = if fill { self.fill().await } else { self.look(seen).await };
            match done {
                Ok(()) => {
                    self.inner.vitals.answers();
                    waiting.drain(..).for_each(|waiter| drop(waiter.done.send(Ok(()))));
                }
                Err(Behind::Unreachable(why)) => {
                    self.inner.vitals.does_not_answer(&why);
                    give_up(&mut waiting, PATIENCE, &why);
                    pause().await;
                    continue;
                }
                Err(Behind::Useless(why)) => {
                    self.inner.vitals.needs_new_copy(&why);
                    give_up(&mut waiting, Duration::ZERO, &why);
                    break;
                }
            }
            if beat.elapsed() > BEATS_EVERY {
                beat = Instant::now();
                self.beat().await;
            }
            if trimmed.elapsed() > TRIMS_EVERY {
                trimmed = Instant::now();
                self.trim().await;
            }
        }
        let _ = self
            .connection
            .query(
                "update {schema}.nodes set until = now() where id = $1",
                &[(&self.node, Type::INT4)],
            )
            .await;
    }

    /// Fills the copy with all rows.
    async fn fill(&mut self) -> Result<(), Behind> {
        let filled = fill::copy(&self.inner, &mut self.connection, &self.schema).await;
        self.heads = filled.map_err(|e| Behind::Useless(e.to_string()))?;
        Ok(())
    }

    /// Brings the copy up to date.
    async fn look(&mut self, mut seen: HashMap<Vec<u8>, Option<Cached>>) -> Result<(), Behind> {
        let rows = self.ask().await.map_err(|e| match e {
            Failed::NotSent(why) | Failed::Refused(_, why) | Failed::Unknown(why) => {
                Behind::Unreachable(why)
            }
        })?;
        let (mut writes, mut entered, mut is_known) = (Writes::new(), Vec::new(), false);
        for row in rows {
            match News::read(&row).map_err(|e| Behind::Unreachable(e.to_string()))? {
                News::Known => is_known = true,
                News::Lane { node, lane, first, last } => {
                    self.heads.know(node);
                    let head = self.heads.lanes.entry((node, lane)).or_insert(0);
                    if first != *head + 1 {
                        return Err(Behind::Useless(format!(
                            "the changes {} to {} of node {node} are missing",
                            *head + 1,
                            first - 1
                        )));
                    }
                    *head = last;
                }
                News::Row { key, value } => {
                    let cached = seen.remove(&key).flatten().filter(|cached| {
                        value
                            .as_deref()
                            .is_some_and(|row| version_of(Some(row)) == cached.record.version())
                    });
                    entered.push(Seen { row: key.clone(), cached });
                    writes.insert(key, value);
                }
            }
        }
        if !is_known {
            return Err(Behind::Useless(GIVEN_UP.into()));
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.inner.enter(writes, entered).map_err(|e| Behind::Useless(e.to_string()))
    }

    async fn ask(&mut self) -> Result<Vec<Row>, Failed> {
        let nodes: Vec<i32> = self.heads.lanes.keys().map(|(node, _)| *node).collect();
        let lanes: Vec<i16> = self.heads.lanes.keys().map(|(_, lane)| *lane).collect();
        let seqs: Vec<i64> = self.heads.lanes.values().copied().collect();
        let sql =
            "select node, lane, first, last, key, value from {schema}.news($1, $2, $3, $4, $5)";
        self.connection
            .query(
                sql,
                &[
                    (&self.node, Type::INT4),
                    (&nodes, Type::INT4_ARRAY),
                    (&lanes, Type::INT2_ARRAY),
                    (&seqs, Type::INT8_ARRAY),
                    (&self.heads.newest, Type::INT4),
                ],
            )
            .await
    }

    /// Says that this node lives.
    async fn beat(&mut self) {
        let sql = "update {schema}.nodes set until = now() + interval '6 seconds' where id = $1";
        if let Err(e) = self.connection.query(sql, &[(&self.node, Type::INT4)]).await {
            tracing::debug!(error = ?e, "the node could not say that it lives");
        }
    }

    /// Removes what no node needs, and forgets the lanes of nodes that are no longer listed.
    async fn trim(&mut self) {
        let trimmed =
            self.connection.query(&format!("select {{schema}}.trim('{KEPT}')"), &[]).await;
        if let Err(e) = trimmed {
            tracing::debug!(error = ?e, "old changes could not be removed");
        }
        if let Ok(rows) = self.connection.query("select id from {schema}.nodes", &[]).await {
            let known: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
            let newest = self.heads.newest;
            self.heads.lanes.retain(|(node, _), _| known.contains(node) || *node == newest);
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
    Lane { node: i32, lane: i16, first: i64, last: i64 },
    Row { key: Vec<u8>, value: Option<Vec<u8>> },
}

impl News {
    fn read(row: &Row) -> Result<News, tokio_postgres::Error> {
        if let Some(key) = row.try_get::<_, Option<Vec<u8>>>("key")? {
            return Ok(News::Row { key, value: row.try_get("value")? });
        }
        match row.try_get::<_, Option<i16>>("lane")? {
            None => Ok(News::Known),
            Some(lane) => Ok(News::Lane {
                node: row.try_get("node")?,
                lane,
                first: row.try_get("first")?,
                last: row.try_get("last")?,
            }),
        }
    }
}
