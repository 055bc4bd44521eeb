//! The tables of a store: made where there are none, and refused where a newer program made them.

use super::connection::{Connection, Failed, failed};
use crate::StoreError;

/// The version of the tables and functions in `schema.sql`.
const FORMAT: i32 = 1;
/// Any number: who makes the tables holds this lock, so that two nodes that start together make them once.
const LOCK: i64 = 0x0073_7663;

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

/// Gives this process an id that no other has had, and says that it lives.
pub(super) async fn register(connection: &mut Connection) -> Result<i32, Failed> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let rows = connection
        .query(
            "with started as (update {schema}.store set last_node = last_node + 1 returning last_node)
             insert into {schema}.nodes (id, name, until)
             select last_node, $1, now() + interval '6 seconds' from started returning id",
            &[(&name, tokio_postgres::types::Type::TEXT)],
        )
        .await?;
    rows.first()
        .map(|row| row.get(0))
        .ok_or_else(|| Failed::NotSent("the database gave this node no id".into()))
}
