//! Fills an empty copy with the rows of the database, and an empty database with rows.

use super::{
    connection::{Connection, Failed, failed},
    follower::Heads,
    lane::version,
};
use crate::{Inner, StoreError, rows::Writes};
use futures_util::{StreamExt, pin_mut};
use tokio_postgres::{
    binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream},
    types::Type,
};

/// Bytes of rows that enter the copy together.
const AT_A_TIME: usize = 1 << 20;

/// Fills the copy, and returns what it holds.
pub(super) async fn copy(
    inner: &Inner,
    connection: &mut Connection,
    schema: &str,
) -> Result<Heads, StoreError> {
    let lost = |e: tokio_postgres::Error| failed(&e).told();
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await
        .map_err(lost)?;
    let mut heads = Heads::default();
    let newest = format!("select last_node from {schema}.store");
    heads.know(transaction.query_one(&newest, &[]).await.map_err(lost)?.get(0));
    let ends = format!("select node, lane, max(seq) from {schema}.feed group by node, lane");
    for row in transaction.query(&ends, &[]).await.map_err(lost)? {
        heads.lanes.insert((row.get(0), row.get(1)), row.get(2));
    }
    let listed = format!("select id from {schema}.nodes");
    let listed = transaction.query(&listed, &[]).await.map_err(lost)?;
    let listed: Vec<i32> = listed.iter().map(|row| row.get(0)).collect();
    heads.lanes.retain(|(node, _), _| listed.contains(node));

    let rows = format!("copy {schema}.rows (key, value) to stdout (format binary)");
    let rows = transaction.copy_out(rows.as_str()).await.map_err(lost)?;
    let rows = BinaryCopyOutStream::new(rows, &[Type::BYTEA, Type::BYTEA]);
    pin_mut!(rows);
    let (mut writes, mut bytes) = (Writes::new(), 0);
    while let Some(row) = rows.next().await {
        let row = row.map_err(lost)?;
        let (key, value): (Vec<u8>, Vec<u8>) =
            (row.try_get(0).map_err(lost)?, row.try_get(1).map_err(lost)?);
        bytes += key.len() + value.len();
        writes.insert(key, Some(value));
        if bytes >= AT_A_TIME {
            inner.enter(std::mem::take(&mut writes), Vec::new())?;
            bytes = 0;
        }
    }
    inner.enter(writes, Vec::new())?;
    transaction.commit().await.map_err(lost)?;
    Ok(heads)
}

/// Puts rows into an empty database, all or none.
pub(super) async fn load(
    connection: &mut Connection,
    schema: &str,
    chunks: &mut (dyn Iterator<Item = Result<Writes, StoreError>> + Send),
) -> Result<(), StoreError> {
    let lost = |e: tokio_postgres::Error| failed(&e).told();
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = client.transaction().await.map_err(lost)?;
    // Until the end nobody else writes, so that the database is empty and stays so.
    transaction
        .batch_execute(&format!("lock table {schema}.rows in exclusive mode"))
        .await
        .map_err(lost)?;
    let empty = format!("select not exists (select from {schema}.rows)");
    if !transaction.query_one(&empty, &[]).await.map_err(lost)?.get::<_, bool>(0) {
        return Err(StoreError::Unwritable("the store is not empty".into()));
    }
    let sink = format!("copy {schema}.rows (key, version, value) from stdin (format binary)");
    let sink = transaction.copy_in(sink.as_str()).await.map_err(lost)?;
    let writer = BinaryCopyInWriter::new(sink, &[Type::BYTEA, Type::INT8, Type::BYTEA]);
    pin_mut!(writer);
    for chunk in chunks {
        for (key, value) in chunk? {
            let Some(value) = value else { continue };
            let version = version(&key, &value);
            writer.as_mut().write(&[&key, &version, &value]).await.map_err(lost)?;
        }
    }
    writer.finish().await.map_err(lost)?;
    transaction.commit().await.map_err(lost)
}
