//! One connection to the database, which is opened when it is needed.

use super::address::Postgres;
use crate::StoreError;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Row, error::SqlState, types::ToSql, types::Type};

/// How long one request may take. The database is not told to give it up: whoever waits for a standby would
/// then be told that a change is safe which is not.
const ANSWERS: Duration = Duration::from_secs(5);

/// The pause before a database is asked again that did not answer or was not ready.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits for a moment.
#[allow(
    clippy::disallowed_methods,
    reason = "the store is below the port, and its tests wait for a database anyway"
)]
pub(super) async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// A connection that may be broken, and is opened again by whoever needs it.
pub(super) struct Connection {
    postgres: Postgres,
    client: Option<Client>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// It never left: nothing was done.
    NotSent(String),
    /// The database refused it, and undid what it had done.
    Refused(SqlState, String),
    /// The connection broke, or no answer came in time: it may have been done.
    Unknown(String),
}

impl Failed {
    /// The error of a caller who changed nothing.
    pub(super) fn told(self) -> StoreError {
        match self {
            Failed::NotSent(why) | Failed::Unknown(why) => StoreError::Unreachable(why),
            Failed::Refused(state, why) if is_full(&state) => {
                tracing::error!(why, "the database has no room");
                StoreError::NoRoom
            }
            Failed::Refused(_, why) => StoreError::Io(why),
        }
    }
}

fn is_full(state: &SqlState) -> bool {
    [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY, SqlState::INSUFFICIENT_RESOURCES].contains(state)
}

impl Connection {
    pub(super) fn new(postgres: &Postgres) -> Connection {
        Connection { postgres: postgres.clone(), client: None }
    }

    /// The open connection; opens it if there is none, or if it has ended.
    pub(super) async fn client(&mut self) -> Result<&mut Client, Failed> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
            let opening = self.postgres.config.connect(self.postgres.tls.clone());
            let (client, connection) = match timeout(ANSWERS, opening).await {
                Ok(opened) => opened.map_err(|e| Failed::NotSent(told(&e)))?,
                Err(_) => return Err(Failed::NotSent("the database does not answer".into())),
            };
            tokio::spawn(async move {
                if let Err(e) = connection.await {
                    tracing::debug!(error = %told(&e), "a connection to the database ended");
                }
            });
            self.client = Some(client);
        }
        self.client.as_mut().ok_or_else(|| Failed::NotSent("there is no connection".into()))
    }

    /// Sends one query, in which `{schema}` is the schema of the store.
    pub(super) async fn query(
        &mut self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failed> {
        let sql = self.postgres.sql(sql);
        let client = self.client().await?;
        let failed = match timeout(ANSWERS, client.query_typed(&sql, params)).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(e)) => failed(&e),
            Err(_) => Failed::Unknown("the database does not answer".into()),
        };
        if !matches!(failed, Failed::Refused(..)) {
            self.close();
        }
        Err(failed)
    }

    /// Gives the connection up. The next request opens another.
    pub(super) fn close(&mut self) {
        self.client = None;
    }
}

/// What an error says of the request. A server that ends, or turns into a standby, may have done it already.
pub(super) fn failed(e: &tokio_postgres::Error) -> Failed {
    match e.as_db_error() {
        Some(refusal) if !is_end_of_connection(refusal) => {
            Failed::Refused(refusal.code().clone(), told(e))
        }
        _ => Failed::Unknown(told(e)),
    }
}

fn is_end_of_connection(refusal: &tokio_postgres::error::DbError) -> bool {
    use tokio_postgres::error::Severity::{Fatal, Panic};
    matches!(refusal.parsed_severity(), Some(Fatal | Panic))
        || *refusal.code() == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// An error with its causes, without the values of a request.
pub(super) fn told(e: &tokio_postgres::Error) -> String {
    match e.as_db_error() {
        Some(refusal) => format!("{} ({})", refusal.message(), refusal.code().code()),
        None => {
            let mut text = e.to_string();
            let mut cause = std::error::Error::source(e);
            while let Some(e) = cause {
                text = format!("{text}: {e}");
                cause = e.source();
            }
            text
        }
    }
}
