//! Says that this process lives, from before the copy is filled until the end, holds leases, and removes what no
//! node needs.

use super::{
    Nodes,
    address::Postgres,
    connection::{Connection, Failed},
    follower::{GIVEN_UP, Waiter},
    schema::Node,
};
use crate::{Inner, Shard, leases};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_postgres::types::{ToSql, Type};

/// How often it says so.
const BEATS_EVERY: Duration = Duration::from_secs(1);
/// For how long that holds: after it, other nodes take the leases of this one.
const LIVES: &str = "6 seconds";
/// For how long this process acts under its leases after it said so. What is left until others take them is for
/// an act that has begun, and for a standby that took over and missed the last beat.
const ACTS: Duration = Duration::from_secs(4);
/// How often what nobody needs any more is removed.
const TRIMS_EVERY: Duration = Duration::from_secs(60);
/// How long a node may be silent before it is given up. Batches stay in the feed for twice as long.
const KEPT: &str = "10 minutes";

pub(super) struct Heart {
    inner: Arc<Inner>,
    connection: Connection,
    node: Node,
    nodes: Nodes,
    fences: mpsc::WeakUnboundedSender<Waiter>,
    /// The shards for which this process acts no more, and which the next beat gives to others.
    giving: Vec<Shard>,
}

impl Heart {
    pub(super) fn new(
        inner: Arc<Inner>,
        postgres: &Postgres,
        (node, nodes): (Node, Nodes),
        fences: mpsc::WeakUnboundedSender<Waiter>,
    ) -> Heart {
        let connection = Connection::new(postgres);
        Heart { inner, connection, node, nodes, fences, giving: Vec::new() }
    }

    /// Beats until the sender is dropped. Then the node lives no more. It takes leases once it is told that the
    /// process `serves`.
    pub(super) async fn beat(mut self, mut serves: watch::Receiver<bool>) {
        let mut trimmed = Instant::now();
        loop {
            let begun = leases::now();
            match self.say(LIVES).await {
                Some(false) => return self.inner.vitals.needs_new_copy(GIVEN_UP),
                Some(true) if self.nodes == Nodes::Several && *serves.borrow() => {
                    self.hold(begun + ACTS).await;
                }
                Some(true) | None => {}
            }
            if trimmed.elapsed() > TRIMS_EVERY {
                trimmed = Instant::now();
                let sql = format!("select {{schema}}.trim('{KEPT}')");
                if let Err(e) = self.connection.query(&sql, &[]).await {
                    tracing::debug!(error = ?e, "old changes could not be removed");
                }
            }
            if let Ok(Err(_)) = timeout(BEATS_EVERY, serves.changed()).await {
                break;
            }
        }
        // Others may take them as soon as that is said.
        self.inner.leases.hold(BTreeMap::new(), Duration::ZERO);
        self.say("0 seconds").await;
    }

    /// Says for how long the node lives. False: it was given up. `None`: the database does not answer.
    async fn say(&mut self, lives: &str) -> Option<bool> {
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.node.id, Type::INT4), (&self.node.token, Type::TEXT)];
        let sql = format!("select {{schema}}.beat($1, $2, interval '{lives}')");
        match self.connection.query(&sql, &params).await {
            Ok(rows) => rows.first().map(|row| row.get(0)),
            Err(e) => {
                tracing::debug!(error = ?e, "the node could not say that it lives");
                None
            }
        }
    }

    /// Takes the leases that are free, up to a fair share, and stops acting for those beyond it.
    async fn hold(&mut self, until: Duration) {
        let (mut held, share) = match self.ask().await {
            Ok(told) => told,
            Err(e) if self.inner.leases.all().is_empty() => {
                return tracing::warn!(error = ?e, "this node acts for nothing: it gets no leases");
            }
            Err(e) => return tracing::debug!(error = ?e, "no leases were taken"),
        };
        let surplus = held.len().saturating_sub(share);
        self.giving = held.keys().rev().take(surplus).copied().collect();
        held.retain(|shard, _| !self.giving.contains(shard));
        let before = self.inner.leases.epochs();
        let is_new = held.iter().any(|(shard, epoch)| before.get(shard) != Some(epoch));
        if is_new && !self.fence().await {
            held.retain(|shard, epoch| before.get(shard) == Some(epoch));
        }
        self.inner.leases.hold(held, until);
    }

    /// Waits until the copy has all that was written before now: whoever acts must know what the one before
    /// knew.
    async fn fence(&self) -> bool {
        let (waiter, over) = Waiter::new();
        let sent = self.fences.upgrade().is_some_and(|fences| fences.send(waiter).is_ok());
        sent && matches!(over.await, Ok(Ok(())))
    }

    /// Gives shards, and asks which ones this node holds and how many it should.
    async fn ask(&mut self) -> Result<(BTreeMap<Shard, i64>, usize), Failed> {
        let gives: Vec<_> = self.giving.iter().map(|shard| shard.number()).collect();
        let params: [(&(dyn ToSql + Sync), Type); 3] = [
            (&self.node.id, Type::INT4),
            (&self.node.token, Type::TEXT),
            (&gives, Type::INT2_ARRAY),
        ];
        let sql = "select shard, epoch from {schema}.hold($1, $2, $3)";
        let (mut held, mut share) = (BTreeMap::new(), 0);
        for row in self.connection.query(sql, &params).await? {
            match (row.get(0), row.get(1)) {
                (Some(shard), epoch) => drop(held.insert(Shard::numbered(shard), epoch)),
                (None, count) => share = usize::try_from(count).unwrap_or_default(),
            }
        }
        Ok((held, share))
    }
}
