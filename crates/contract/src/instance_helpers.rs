//! Helpers for instances of both kinds: what they say, what they use, what is in them.

use crate::{
    AppId, Timestamp,
    instances::{Instance, InstanceKind, Role},
    text::{CloudFunctionName, Identifier, SessionToken},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

functions! {
    group "Instance helpers";

    /// Read an app's instance.
    "svc_getInstanceDetails": GetInstanceDetails {
        app_id: AppId,
        /// Needed where the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> Instance { who: Member of (app_id), effect: Read }

    /// Read the last output of an instance's containers, oldest first, at most 1 MiB.
    "svc_getInstanceLogs": GetInstanceLogs {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// All services where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<Role>,
        /// How many lines, 1 to 5000; 200 where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tail: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// Both where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<LogStream>,
    } -> InstanceLogs { who: Member of (app_id), effect: Read }

    /// Read what an app's instance uses, and how many users and sessions it has.
    "svc_getAppMetrics": GetAppMetrics {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> AppMetrics { who: Member of (app_id), effect: Read, errors: [NotNow "the instance does not run"] }

    /// Try the connection to an instance's SQL database, step by step.
    "svc_testSqlConnection": TestSqlConnection {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The instance's own database where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<Identifier>,
    } -> SqlConnection { who: Member of (app_id), effect: Read, errors: [NotNow "the instance has no SQL database"] }

    /// List the cloud functions of an app's backend.
    "svc_listCloudFunctions": ListCloudFunctions { app_id: AppId } -> CloudFunctions
    { who: Member of (app_id), effect: Read, errors: [NoAnswer "the backend does not answer", NotNow "it does not run"] }

    /// Call a cloud function of an app's backend. Its reply is answered as it is; its error keeps
    /// its code and message, under 141.
    "svc_runCloudFunction": RunCloudFunction {
        app_id: AppId,
        function_name: CloudFunctionName,
        /// None where nothing is given.
        #[serde(default)]
        parameters: serde_json::Map<String, Value>,
        /// A session of one of the backend's own users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<SessionToken>,
    } -> Value { who: Member of (app_id), effect: Change,
        errors: [CalledFailed "the function failed", NoAnswer "the backend does not answer", NotNow "it does not run"] }

    /// Read the secrets that were made for an app's instance, such as its backend's own master key.
    "svc_getInstanceSecrets": GetInstanceSecrets {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> InstanceSecrets { who: OwnerOrAdmin of (app_id), effect: Change, secret: true }
}

records! {
    /// What containers wrote.
    pub struct InstanceLogs {
        lines: Vec<InstanceLine>,
        /// There was more than is given.
        truncated: bool,
    }

    /// A line that a container wrote.
    pub struct InstanceLine { at: Timestamp, service: Role, stream: LogStream, text: String }

    /// What an instance uses, and who uses it.
    pub struct AppMetrics {
        cpu_percent: Option<f64>,
        memory_bytes: u64,
        memory_limit_bytes: u64,
        memory_percent: f64,
        user_count: Option<u64>,
        session_count: Option<u64>,
        /// Why there are no counts.
        counts_unavailable: Option<String>,
        sampled_at: Timestamp,
    }

    /// How a try to connect went.
    pub struct SqlConnection {
        ok: bool,
        latency_ms: f64,
        server_version: Option<String>,
        databases: Option<Vec<String>>,
        /// The steps, up to the first that failed.
        steps: Vec<SqlStep>,
        error: Option<String>,
        /// What to do about it.
        hint: Option<String>,
    }

    /// A step of it.
    pub struct SqlStep { name: SqlStepName, ok: bool, latency_ms: f64 }

    /// The cloud functions of a backend.
    pub struct CloudFunctions { functions: Vec<String> }

    /// The secrets of an instance, by the names that its template gives them.
    pub struct InstanceSecrets { secrets: std::collections::BTreeMap<String, String> }
}

/// Where a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both.
    All,
}

/// The steps of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SqlStepName {
    /// The name of the server is known.
    Resolve,
    /// The server takes the connection.
    Connect,
    /// It knows the user and the password.
    Authenticate,
    /// It answers a query.
    Query,
}
