//! Functions for instances of both kinds: logs, metrics, databases, cloud functions and secrets.

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

    /// Read an instance of an app.
    "svc_getInstanceDetails": GetInstanceDetails {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> Instance { who: Member of (app_id), effect: Read, scope: InstanceRead }

    /// Read the end of the output of an instance's containers, oldest lines first, at most 1 MiB.
    "svc_getInstanceLogs": GetInstanceLogs {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The default is all services.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<Role>,
        /// The number of lines, from 1 to 5000. The default is 200.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tail: Option<u32>,
        /// Return only lines that were written at or after this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// The default is both streams.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<LogStream>,
    } -> InstanceLogs { who: Member of (app_id), effect: Read, scope: InstanceRead }

    /// Read the resource usage of an app's instance, and the number of its users and sessions.
    "svc_getAppMetrics": GetAppMetrics {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> AppMetrics { who: Member of (app_id), effect: Read, scope: InstanceRead, errors: [NotNow "the instance does not run"] }

    /// Test the connection to an instance's SQL database, step by step.
    ///
    /// If the database does not run, the reply has `ok: false` and a hint.
    "svc_testSqlConnection": TestSqlConnection {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The default is the instance's own database.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<Identifier>,
    } -> SqlConnection { who: Member of (app_id), effect: Read, errors: [NotNow "the instance has no SQL database"] }

    /// List the cloud functions of an app's backend.
    "svc_listCloudFunctions": ListCloudFunctions {
        app_id: AppId,
        /// The default is the backend. Market servers have no cloud functions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> CloudFunctions { who: Member of (app_id), effect: Read, errors: [NoAnswer "the backend does not answer", NotNow "it does not run"] }

    /// Call a cloud function of an app's backend.
    ///
    /// The reply is the cloud function's result. An error has code 141 and contains the cloud
    /// function's own code and message.
    "svc_runCloudFunction": RunCloudFunction {
        app_id: AppId,
        /// The default is the backend. Market servers have no cloud functions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The name of the cloud function, from `svc_listCloudFunctions`.
        function_name: CloudFunctionName,
        /// The default is no parameters.
        #[serde(default)]
        parameters: serde_json::Map<String, Value>,
        /// A session of a user of the backend.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<SessionToken>,
    } -> Value { who: Member of (app_id), effect: Change,
        errors: [CalledFailed "the function failed", NoAnswer "the backend does not answer", NotNow "it does not run"] }

    /// Read the generated secrets of an app's instance, such as the master key of its backend.
    "svc_getInstanceSecrets": GetInstanceSecrets {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
    } -> InstanceSecrets { who: OwnerOrAdmin of (app_id), effect: Change, secret: true }
}

records! {
    /// The output of an instance's containers.
    pub struct InstanceLogs {
        lines: Vec<InstanceLine>,
        /// Whether there was more output than the reply contains.
        truncated: bool,
    }

    /// A line of a container's output.
    pub struct InstanceLine {
        /// When the container wrote the line.
        at: Timestamp,
        /// The service whose container wrote the line.
        service: Role,
        /// The stream to which it was written: `stdout` or `stderr`.
        stream: LogStream,
        /// The line without its line break.
        text: String,
    }

    /// The resource usage of an instance, and the number of its users and sessions.
    pub struct AppMetrics {
        cpu_percent: Option<f64>,
        memory_bytes: u64,
        memory_limit_bytes: u64,
        memory_percent: f64,
        /// The number of users of the backend. Null if they cannot be counted: see
        /// `countsUnavailable`.
        user_count: Option<u64>,
        /// The number of their sessions that have not expired. Null if they cannot be counted.
        session_count: Option<u64>,
        /// Why the numbers of users and sessions are missing.
        counts_unavailable: Option<String>,
        sampled_at: Timestamp,
    }

    /// The result of a connection test.
    pub struct SqlConnection {
        /// Whether all steps succeeded.
        ok: bool,
        /// How long the test took, in milliseconds. It is 0 if the database does not run.
        latency_ms: f64,
        /// The version of the database server, such as `16.4`. Null if it could not be read.
        server_version: Option<String>,
        /// The names of the databases on the server. Null if they could not be read.
        databases: Option<Vec<String>>,
        /// The steps, up to the first one that failed.
        steps: Vec<SqlStep>,
        /// Why a step failed, or that the database does not run. Null if `ok` is true.
        error: Option<String>,
        /// How to solve the problem.
        hint: Option<String>,
    }

    /// A step of a connection test.
    pub struct SqlStep {
        /// What the step tests.
        name: SqlStepName,
        /// Whether the step succeeded. After one that did not, no other follows.
        ok: bool,
        /// How long the step took, in milliseconds.
        latency_ms: f64,
    }

    /// The names of a backend's cloud functions.
    pub struct CloudFunctions {
        /// The names in alphabetical order, as `svc_runCloudFunction` takes them.
        functions: Vec<String>,
    }

    /// The secrets of an instance, by their names in the template.
    pub struct InstanceSecrets {
        /// The value of each secret.
        secrets: std::collections::BTreeMap<String, String>,
    }
}

/// An output stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both streams.
    All,
}

/// The steps of a connection test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SqlStepName {
    /// Resolve the host name of the database.
    Resolve,
    /// Connect to the database.
    Connect,
    /// Authenticate with user and password.
    Authenticate,
    /// Execute a query.
    Query,
}
