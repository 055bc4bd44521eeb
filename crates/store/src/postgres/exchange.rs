//! Tells other nodes what this one has to tell, and hears what they told. On a connection of its own: nobody waits
//! for it, and it may be much.

use super::{
    address::Postgres,
    connection::{Connection, Failed},
    schema::Node,
};
use crate::{Bulletin, Inner};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};
use tokio_postgres::types::{ToSql, Type};

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// Exchanges bulletins until the sender is dropped.
pub(super) async fn exchange(
    inner: Arc<Inner>,
    postgres: Postgres,
    node: Node,
    mut end: watch::Receiver<bool>,
) {
    let mut connection = Connection::new(&postgres);
    loop {
        if let Err(e) = once(&inner, &mut connection, &node).await {
            tracing::debug!(error = ?e, "nothing was told to other nodes");
        }
        if let Ok(Err(_)) = timeout(EVERY, end.changed()).await {
            return;
        }
    }
}

async fn once(inner: &Inner, connection: &mut Connection, node: &Node) -> Result<(), Failed> {
    let own = inner.bulletins.take_own();
    let topics: Vec<_> = own.keys().copied().collect();
    let contents: Vec<_> = own.values().collect();
    let params: [(&(dyn ToSql + Sync), Type); 4] = [
        (&node.id, Type::INT4),
        (&node.token, Type::TEXT),
        (&topics, Type::TEXT_ARRAY),
        (&contents, Type::BYTEA_ARRAY),
    ];
    let sql = "select node, topic, content from {schema}.exchange($1, $2, $3, $4)";
    let rows = match connection.query(sql, &params).await {
        Ok(rows) => rows,
        Err(e) => {
            inner.bulletins.take_back(own);
            return Err(e);
        }
    };
    let mut heard: BTreeMap<String, Vec<Bulletin>> = BTreeMap::new();
    for row in rows {
        let bulletin = Bulletin { node: row.get(0), text: row.get::<_, &[u8]>(2).into() };
        heard.entry(row.get(1)).or_default().push(bulletin);
    }
    inner.bulletins.heard(heard);
    Ok(())
}
