//! What operators watch.

use crate::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

edge_endpoints! {
    group "Operator endpoints";

    /// Whether the process is alive.
    "healthz": Get "/healthz" => Healthz
    { access: Anyone, answers: [200 Json(Alive) "It is alive."] }

    /// Whether calls are answered, part by part.
    "readyz": Get "/readyz" => Readyz
    {
        access: Anyone,
        answers: [200 Json(Readiness) "Calls are answered.", 503 Json(Readiness) "Not yet, or no more."],
    }

    /// Figures in the text format of Prometheus.
    "metrics": Get "/metrics" => Metrics
    { access: Anyone, answers: [200 Media("text/plain; version=0.0.4") "The figures."] }

    /// This document.
    "openapi": Get "/openapi.json" => OpenApi
    { access: Anyone, answers: [200 Media("application/json") "The document."] }
}

/// The reply of `GET /healthz`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alive {
    /// `ok`.
    pub status: String,
}

/// `GET /readyz`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// `ready`, `degraded` or `starting`.
    pub status: ReadyState,
    /// Each part with its state.
    pub checks: Checks,
    /// The version of the program.
    pub version: String,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
}

/// Whether calls are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadyState {
    /// Everything works.
    Ready,
    /// Calls are answered, but some actor gave up.
    Degraded,
    /// Not yet, or no more.
    Starting,
}

/// The parts of [`Readiness`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// The store.
    pub store: StoreCheck,
    /// The actors.
    pub actors: ActorsCheck,
    /// The container engine.
    pub engine: EngineCheck,
}

/// The state of the container engine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineCheck {
    /// Whether it answers.
    pub ok: bool,
    /// Why it does not.
    pub error: Option<String>,
    /// Since when it does not.
    pub since: Option<Timestamp>,
    /// Containers of this installation that no instance knows. They are removed after a day.
    pub orphans: u64,
}

/// The state of the store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreCheck {
    /// Whether it takes changes.
    pub ok: bool,
    /// How long the last flush took.
    pub flush_ms: Option<f64>,
}

/// The state of the actors.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorsCheck {
    /// Whether none gave up and none is stuck.
    pub ok: bool,
    /// How many pause after a panic.
    pub restarting: u64,
    /// How many gave up.
    pub gave_up: u64,
}
