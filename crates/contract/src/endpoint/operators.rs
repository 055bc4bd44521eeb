//! Endpoints for operators of the service.

use crate::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

edge_endpoints! {
    group OperatorEndpoints "Operator endpoints";

    /// Whether the process is alive.
    "healthz": Get "/healthz" => Healthz
    { access: Anyone, answers: [200 Json(Alive) "The process is alive."] }

    /// Whether the service answers calls, and the state of its parts.
    "readyz": Get "/readyz" => Readyz
    {
        access: Anyone,
        answers: [200 Json(Readiness) "The service answers calls.", 503 Json(Readiness) "The service is starting or stopping, or its store is not writable."],
    }

    /// Metrics in the OpenMetrics text format.
    ///
    /// They need an address that may use the master key, or `SVC_METRICS_TOKEN` as a bearer token.
    "metrics": Get "/metrics" => Metrics
    { access: Anyone, answers: [200 Media("application/openmetrics-text; version=1.0.0; charset=utf-8") "The metrics."] }

    /// Whether there is a service of an instance with the host name `domain`, for a proxy that gets
    /// certificates when they are needed.
    ///
    /// It needs an address that may use the master key, or that of a trusted proxy, and answers no request that
    /// a proxy forwarded.
    "certificateQuestion": Get "/certificates/ask" => CertificateQuestion
    {
        access: Anyone,
        answers: [200 Media("text/plain; charset=utf-8") "There is one, or it is the name of the service or of the dashboard."],
        errors: [NotFound "there is none"],
    }

    /// The OpenAPI document of the service.
    "openapi": Get "/openapi.json" => OpenApi
    { access: Anyone, answers: [200 Media("application/json") "The document."] }

    /// The JSON schema of `.svc/config.json`, for editors: name this address there in `$schema`.
    "configSchema": Get "/config.schema.json" => ConfigSchema
    { access: Anyone, answers: [200 Media("application/schema+json") "The schema."] }
}

/// The reply of `GET /healthz`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alive {
    /// `ok`.
    pub status: String,
}

/// The reply of `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether the service answers calls.
    pub status: ReadyState,
    /// The state of each part.
    pub checks: Checks,
    /// The version of the program.
    pub version: String,
    /// Milliseconds since the service started.
    pub uptime_ms: u64,
}

/// Whether the service answers calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadyState {
    /// All parts work.
    Ready,
    /// The service answers calls, but an actor has given up or is stuck, the container engine is
    /// unreachable, or the clock jumped.
    Degraded,
    /// The service is starting or stopping, or its store is not writable.
    Starting,
}

/// The parts of [`Readiness`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// Whether the store takes changes.
    pub store: StoreCheck,
    /// Whether actors gave up or are stuck.
    pub actors: ActorsCheck,
    /// The container engine.
    pub engine: EngineCheck,
    /// Whether the clock jumped.
    #[serde(default)]
    pub clock: ClockCheck,
    /// Whether instances reach only what they may.
    #[serde(default)]
    pub egress: EgressCheck,
}

/// What instances reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EgressCheck {
    /// Whether the walls around instances stand, or an operator has chosen to go without. While they do
    /// not stand, no instance is started.
    pub ok: bool,
    /// Why they do not stand.
    pub error: Option<String>,
}

impl Default for EgressCheck {
    fn default() -> Self {
        EgressCheck { ok: true, error: None }
    }
}

/// The state of the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockCheck {
    /// Whether the clock runs evenly. After a jump of more than an hour, nothing is deleted by time,
    /// until an operator calls `svc_admin_confirmClock` or the clock has run evenly for 12 hours.
    pub ok: bool,
    /// The time after the jump.
    pub since: Option<Timestamp>,
    /// How far the clock went, in seconds. Negative: back.
    pub jumped_seconds: Option<i64>,
}

impl Default for ClockCheck {
    fn default() -> Self {
        ClockCheck { ok: true, since: None, jumped_seconds: None }
    }
}

/// The state of the container engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineCheck {
    /// Whether the engine is reachable.
    pub ok: bool,
    /// Why the engine is unreachable.
    pub error: Option<String>,
    /// Since when the engine is unreachable.
    pub since: Option<Timestamp>,
    /// Containers of this installation that belong to no instance. The service removes them after a
    /// day.
    pub orphans: u64,
}

/// The state of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreCheck {
    /// Whether the store accepts changes.
    pub ok: bool,
    /// How long the last flush took, in milliseconds.
    pub flush_ms: Option<f64>,
}

/// The state of the actors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorsCheck {
    /// Whether no actor has given up and none is stuck.
    pub ok: bool,
    /// The number of actors that pause after a panic.
    pub restarting: u64,
    /// The number of actors that have given up.
    pub gave_up: u64,
}
