//! The tables of a store: made where there are none, and refused where a newer program made them.

use super::{
    Nodes,
    address::Postgres,
    connection::{Connection, Failed, in_time, pause},
};
use crate::{StoreError, io};
use std::time::{Duration, Instant};
use tokio_postgres::types::{ToSql, Type};

/// The version of the tables and functions in `schema.sql`.
const FORMAT: i32 = 1;
/// Any number: who makes the tables holds this lock, so that two nodes that start together make them once.
const LOCK: i64 = 0x0073_7663;

/// How long another process is waited for that lives, or was killed a moment ago.
const OTHER_ENDS: Duration = Duration::from_secs(8);

/// Makes the tables if there are none.
pub(super) async fn prepare(
    connection: &mut Connection,
    postgres: &Postgres,
) -> Result<(), StoreError> {
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = in_time(client.transaction()).await.map_err(Failed::told)?;
    let run = async |text: &str| {
        in_time(transaction.batch_execute(&postgres.sql(text))).await.map_err(Failed::told)
    };
    run(&format!("set local lock_timeout = '4s'; select pg_advisory_xact_lock({LOCK})")).await?;
    let named = format!("{}.store", postgres.schema);
    let params: [(&(dyn ToSql + Sync), Type); 1] = [(&named, Type::TEXT)];
    let is_there = transaction.query_typed("select to_regclass($1) is not null", &params);
    let is_there = in_time(is_there).await.map_err(Failed::told)?;
    if !is_there.first().is_some_and(|row| row.get(0)) {
        // Who may make tables in a schema need not have the right to make a schema.
        run("do $$ begin if to_regnamespace('{schema}') is null then create schema {schema}; end if; end $$")
            .await?;
        run(include_str!("schema.sql")).await?;
        run(&format!("insert into {{schema}}.store (format) values ({FORMAT})")).await?;
    }
    let format = postgres.sql("select format from {schema}.store");
    let format = in_time(transaction.query_typed(&format, &[])).await.map_err(Failed::told)?;
    let format: Option<i32> = format.first().map(|row| row.get(0));
    in_time(transaction.commit()).await.map_err(Failed::told)?;
    match format {
        Some(FORMAT) => Ok(()),
        other => Err(StoreError::Unreadable(format!(
            "the tables of the schema {} have format {}, this program knows format {FORMAT}: use the version that made them",
            postgres.schema,
            other.unwrap_or_default()
        ))),
    }
}

/// A process that uses the store, as the database knows it.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) id: i32,
    pub(super) token: String,
}

/// Lists this process as a node. A process that was killed lives in the database for some seconds more, so who
/// must be alone waits that long for another to end.
pub(super) async fn register(
    connection: &mut Connection,
    nodes: Nodes,
) -> Result<Node, StoreError> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let begun = Instant::now();
    loop {
        let sql = "select id, token, other from {schema}.register($1, $2)";
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&name, Type::TEXT), (&(nodes == Nodes::One), Type::BOOL)];
        let rows = connection.query(sql, &params).await.map_err(Failed::told)?;
        let row = rows.first().ok_or_else(|| io("the database gave this node no id"))?;
        if let (Some(id), Some(token)) = (row.get(0), row.get(1)) {
            return Ok(Node { id, token });
        }
        if begun.elapsed() > OTHER_ENDS {
            let other: Option<String> = row.get(2);
            return Err(StoreError::InUse(format!(
                "the store in the database is in use by another svc, which is node {}: stop that one first",
                other.unwrap_or_default()
            )));
        }
        pause().await;
    }
}
