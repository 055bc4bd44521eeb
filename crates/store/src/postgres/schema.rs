//! The tables of a store: made where there are none, and refused where a newer program made them.

use super::{
    Nodes,
    connection::{Connection, Failed, failed, pause},
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
pub(super) async fn prepare(connection: &mut Connection, schema: &str) -> Result<(), StoreError> {
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = client.transaction().await.map_err(|e| failed(&e).told())?;
    let made = async {
        let locked =
            format!("set local lock_timeout = '30s'; select pg_advisory_xact_lock({LOCK})");
        transaction.batch_execute(&locked).await?;
        let there = transaction
            .query_one("select to_regclass($1 || '.store') is not null", &[&schema])
            .await?
            .get::<_, bool>(0);
        if !there {
            transaction
                .batch_execute(&format!(
                    "create schema if not exists {schema}; {} insert into {schema}.store (format) values ({FORMAT})",
                    include_str!("schema.sql").replace("{schema}", schema)
                ))
                .await?;
        }
        let format = transaction
            .query_one(&format!("select format from {schema}.store"), &[])
            .await?
            .get::<_, i32>(0);
        transaction.commit().await?;
        Ok(format)
    };
    match made.await.map_err(|e: tokio_postgres::Error| failed(&e).told())? {
        FORMAT => Ok(()),
        other => Err(StoreError::Unreadable(format!(
            "the tables of schema {schema} have format {other}, this program knows format {FORMAT}: use the version that made them"
        ))),
    }
}

/// Gives this process an id that no other has had, and says that it lives. A process that was killed lives in
/// the database for some seconds more, so who must be alone waits that long for another to end.
pub(super) async fn register(connection: &mut Connection, nodes: Nodes) -> Result<i32, StoreError> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let begun = Instant::now();
    loop {
        let sql = "select id, other from {schema}.register($1, $2)";
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&name, Type::TEXT), (&(nodes == Nodes::One), Type::BOOL)];
        let rows = connection.query(sql, &params).await.map_err(Failed::told)?;
        let row = rows.first().ok_or_else(|| io("the database gave this node no id"))?;
        if let Some(id) = row.get(0) {
            return Ok(id);
        }
        if begun.elapsed() > OTHER_ENDS {
            let other: Option<String> = row.get(1);
            return Err(StoreError::InUse(format!(
                "the store in the database is in use by another svc, which is node {}: stop that one first",
                other.unwrap_or_default()
            )));
        }
        pause().await;
    }
}
