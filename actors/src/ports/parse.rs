//! Requests to the Parse Server of an instance.

use async_trait::async_trait;
use contract::{Timestamp, text::CloudFunctionName};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, net::SocketAddr};

#[async_trait]
pub trait ParseServers: Send + Sync {
    /// The names of all cloud functions.
    async fn functions(&self, server: &ParseServer) -> Result<BTreeSet<String>, ParseError>;
    /// Runs a cloud function without the master key, and returns its result.
    async fn run(&self, server: &ParseServer, call: FunctionCall) -> Result<Value, ParseError>;
    /// Counts the users, and the sessions that do not expire before `now`.
    async fn count_users(
        &self,
        server: &ParseServer,
        now: Timestamp,
    ) -> Result<UserCounts, ParseError>;
}

/// The address and the keys of a Parse Server.
#[derive(Clone)]
pub struct ParseServer {
    pub address: SocketAddr,
    pub mount_path: String,
    pub graphql_path: String,
    pub application_id: String,
    pub master_key: Option<String>,
}

#[derive(Debug, Clone)]
pub struct FunctionCall {
    pub name: CloudFunctionName,
    pub parameters: Map<String, Value>,
    /// A session of a user of the Parse Server.
    pub session_token: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserCounts {
    pub users: u64,
    pub sessions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The request was not sent.
    #[error("no connection")]
    NotConnected,
    /// The request may have been executed.
    #[error("no answer in time")]
    NoAnswer,
    /// Only the GraphQL API lists the functions.
    #[error("the server does not serve GraphQL")]
    NoGraphql,
    /// The server answered with an error.
    #[error("{error}")]
    Failed { code: Option<i64>, error: String },
}
