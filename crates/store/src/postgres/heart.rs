//! Says that this process lives, from before the copy is filled until the end, and removes what no node needs.

use super::{address::Postgres, connection::Connection, follower::GIVEN_UP, schema::Node};
use crate::Inner;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};
use tokio_postgres::types::{ToSql, Type};

/// How often it says so.
const BEATS_EVERY: Duration = Duration::from_secs(1);
/// For how long that holds.
const LIVES: &str = "6 seconds";
/// How often what nobody needs any more is removed.
const TRIMS_EVERY: Duration = Duration::from_secs(60);
/// How long a node may be silent before it is given up. Batches stay in the feed for twice as long.
const KEPT: &str = "10 minutes";

/// Beats until `end` is told or dropped. Then the node lives no more.
pub(super) async fn beat(
    inner: Arc<Inner>,
    postgres: Postgres,
    node: Node,
    mut end: watch::Receiver<()>,
) {
    let mut connection = Connection::new(&postgres);
    let mut trimmed = Instant::now();
    while timeout(BEATS_EVERY, end.changed()).await.is_err() {
        if say(&mut connection, &node, LIVES).await == Some(false) {
            inner.vitals.needs_new_copy(GIVEN_UP);
            return;
        }
        if trimmed.elapsed() > TRIMS_EVERY {
            trimmed = Instant::now();
            let sql = format!("select {{schema}}.trim('{KEPT}')");
            if let Err(e) = connection.query(&sql, &[]).await {
                tracing::debug!(error = ?e, "old changes could not be removed");
            }
        }
    }
    say(&mut connection, &node, "0 seconds").await;
}

/// Says for how long the node lives. False: it was given up. `None`: the database does not answer.
async fn say(connection: &mut Connection, node: &Node, lives: &str) -> Option<bool> {
    let params: [(&(dyn ToSql + Sync), Type); 2] =
        [(&node.id, Type::INT4), (&node.token, Type::TEXT)];
    let sql = format!("select {{schema}}.beat($1, $2, interval '{lives}')");
    match connection.query(&sql, &params).await {
        Ok(rows) => rows.first().map(|row| row.get(0)),
        Err(e) => {
            tracing::debug!(error = ?e, "the node could not say that it lives");
            None
        }
    }
}
