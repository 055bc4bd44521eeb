//! One connection to the database, which is opened when it is needed.

use super::address::Postgres;
use crate::StoreError;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Row,
    error::{DbError, Severity, SqlState},
    types::{ToSql, Type},
};

/// How long one request may take, and how long a host to be ready for requests. The database is not told to give it up: whoever waits for a standby would
/// then be told that a change is safe which is not.
const ANSWERS: Duration = Duration::from_secs(5);

/// The states that the functions of `schema.sql` raise: this node was given up, its copy can never be what the
/// database holds, and another node acts for what a batch writes.
pub(super) const NODE_WAS_GIVEN_UP: &str = "SV001";
pub(super) const COPY_IS_USELESS: &str = "SV002";
pub(super) const LEASE_WAS_LOST: &str = "SV003";

const SILENT: &str = "the database does not answer";
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
            Failed::Refused(state, why) if state == SqlState::DISK_FULL => {
                tracing::error!(why, "the database has no room");
                StoreError::NoRoom
            }
            Failed::Refused(_, why) => StoreError::Busy(format!("the database refused: {why}")),
        }
    }
}

impl Connection {
    pub(super) fn new(postgres: &Postgres) -> Connection {
        Connection { postgres: postgres.clone(), client: None }
    }

    /// The open connection; opens it if there is none, or if it has ended.
    pub(super) async fn client(&mut self) -> Result<&mut Client, Failed> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
            self.client = Some(self.open().await?);
        }
        self.client.as_mut().ok_or_else(|| Failed::NotSent("there is no connection".into()))
    }

    /// Opens a connection to the first host that takes writes.
    async fn open(&self) -> Result<Client, Failed> {
        let mut why = Vec::new();
        for (number, host) in self.postgres.hosts() {
            match timeout(ANSWERS, host.connect(self.postgres.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    self.postgres.use_host(number);
                    tokio::spawn(async move {
                        if let Err(e) = connection.await {
                            tracing::debug!(error = %told(&e), "a connection to the database ended");
                        }
                    });
                    return Ok(client);
                }
                Ok(Err(e)) => why.push(told(&e)),
                Err(_) => why.push(SILENT.into()),
            }
        }
        why.dedup();
        Err(Failed::NotSent(why.join("; ")))
    }

    /// Gives the connection up. The next query opens another.
    pub(super) fn close(&mut self) {
        self.client = None;
    }

    /// Sends one query, in which `{schema}` is the schema of the store.
    pub(super) async fn query(
        &mut self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failed> {
        let sql = self.postgres.sql(sql);
        let client = self.client().await?;
        let answer = in_time(client.query_typed(&sql, params)).await;
        if matches!(answer, Err(Failed::Unknown(_))) {
            self.close();
        }
        answer
    }
}

/// Waits for an answer, for a limited time.
pub(super) async fn in_time<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failed> {
    match timeout(ANSWERS, answer).await {
        Ok(answer) => answer.map_err(|e| failed(&e)),
        Err(_) => Err(Failed::Unknown(SILENT.into())),
    }
}

/// What an error says of the request. A server that ends, or turns into a standby, may have done it already; so
/// may one whose answer a pool of connections has lost.
fn failed(e: &tokio_postgres::Error) -> Failed {
    match e.as_db_error() {
        Some(refusal) if !leaves_in_doubt(refusal) => {
            Failed::Refused(refusal.code().clone(), told(e))
        }
        _ => Failed::Unknown(told(e)),
    }
}

fn leaves_in_doubt(refusal: &DbError) -> bool {
    let code = refusal.code().code();
    matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || ["FATAL", "PANIC"].contains(&refusal.severity())
        || code.starts_with("08")
        || code.starts_with("57P")
        || *refusal.code() == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
        || *refusal.code() == SqlState::READ_ONLY_SQL_TRANSACTION
        // Its number was used, so an attempt before this one was written or given up.
        || refusal.constraint() == Some("feed_pkey")
}

/// An error with its causes, without the values of a request.
fn told(e: &tokio_postgres::Error) -> String {
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
