//! Fills an empty copy with the rows of the database, and an empty database with rows.
//!
//! Nothing here is a prepared statement with a name: another process behind the same pool of connections could
//! have one of that name.

use super::{
    address::Postgres,
    connection::{Connection, Failed, in_time},
    heads::{Head, Heads},
    lane::stamp_of,
};
use crate::{Inner, StoreError, io, read_failed, rows::Writes};
use futures_util::{StreamExt, pin_mut};
use tokio_postgres::{
    IsolationLevel, Row,
    types::{ToSql, Type},
};

/// Bytes of rows that enter the copy together.
const AT_A_TIME: usize = 1 << 20;

/// Fills the copy, and returns what it holds.
pub(super) async fn copy(
    inner: &Inner,
    connection: &mut Connection,
    postgres: &Postgres,
) -> Result<Heads, StoreError> {
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start();
    let transaction = in_time(transaction).await.map_err(Failed::told)?;
    let ask = async |text: &str| {
        in_time(transaction.query_typed(&postgres.sql(text), &[])).await.map_err(Failed::told)
    };
    let mut heads = Heads::default();
    let newest = ask("select last_node from {schema}.store").await?;
    heads.know(newest.first().map_or(0, |row| row.get(0)));
    let last = "select distinct on (node, lane) node, lane, seq, mark from {schema}.feed
        order by node, lane, seq desc";
    for row in ask(last).await? {
        let head = Head { seq: row.get(2), mark: row.get(3) };
        heads.lanes.insert((row.get(0), row.get(1)), head);
    }
    let listed = ask("select id from {schema}.nodes where token is not null").await?;
    let listed: Vec<i32> = listed.iter().map(|row| row.get(0)).collect();
    heads.lanes.retain(|(node, _), _| listed.contains(node));

    let no_params: [(&(dyn ToSql + Sync), Type); 0] = [];
    let sql = postgres.sql("select key, value from {schema}.rows");
    let rows = in_time(transaction.query_typed_raw(&sql, no_params)).await.map_err(Failed::told)?;
    pin_mut!(rows);
    let (mut writes, mut bytes) = (Writes::new(), 0);
    while let Some(row) =
        in_time(async { rows.next().await.transpose() }).await.map_err(Failed::told)?
    {
        let (key, value): (Vec<u8>, Vec<u8>) = pair(&row).map_err(read_failed)?;
        bytes += key.len() + value.len();
        writes.insert(key, Some(value));
        if bytes >= AT_A_TIME {
            inner.enter(std::mem::take(&mut writes), Vec::new())?;
            bytes = 0;
        }
    }
    inner.enter(writes, Vec::new())?;
    in_time(transaction.commit()).await.map_err(Failed::told)?;
    Ok(heads)
}

fn pair(row: &Row) -> Result<(Vec<u8>, Vec<u8>), tokio_postgres::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Puts rows into an empty database, all or none.
pub(super) async fn load(
    connection: &mut Connection,
    postgres: &Postgres,
    chunks: &mut (dyn Iterator<Item = Result<Writes, StoreError>> + Send),
) -> Result<(), StoreError> {
    let client = connection.client().await.map_err(Failed::told)?;
    let transaction = in_time(client.transaction()).await.map_err(Failed::told)?;
    // Until the end nobody else writes, so that the database is empty and stays so.
    let lock = postgres.sql("lock table {schema}.rows in exclusive mode");
    in_time(transaction.batch_execute(&lock)).await.map_err(Failed::told)?;
    let is_there = postgres.sql("select from {schema}.rows limit 1");
    let found = in_time(transaction.query_typed(&is_there, &[])).await.map_err(Failed::told)?;
    if !found.is_empty() {
        return Err(StoreError::Unwritable("the store is not empty".into()));
    }
    let insert = postgres
        .sql("insert into {schema}.rows (key, stamp, value) select * from unnest($1, $2, $3)");
    for chunk in chunks {
        let rows = chunk?.into_iter().filter_map(|(key, value)| {
            let value = value?;
            Some((stamp_of(&key, &value), (key, value)))
        });
        let (stamps, (keys, values)): (Vec<i64>, (Vec<_>, Vec<_>)) = rows.unzip();
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&keys, Type::BYTEA_ARRAY), (&stamps, Type::INT8_ARRAY), (&values, Type::BYTEA_ARRAY)];
        let done = in_time(transaction.execute_typed(&insert, &params)).await;
        done.map_err(Failed::told)?;
    }
    // A standby may take its time, and a limit would leave in doubt what became of all rows.
    transaction.commit().await.map_err(io)
}
