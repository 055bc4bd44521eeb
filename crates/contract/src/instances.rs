//! Instances: backends and market servers that the service runs in containers.

use crate::{
    AppId, InstanceId, Name, ProjectId, TemplateId, Timestamp, VersionName,
    templates::SemanticVersion, text::Slug,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

records! {
    /// A backend or market server, with all of its services.
    pub struct Instance {
        id: InstanceId,
        app_id: AppId,
        project_id: ProjectId,
        kind: InstanceKind,
        name: Name,
        state: InstanceState,
        /// What was asked for last.
        desired_state: DesiredState,
        /// Where its server is reached.
        url: String,
        template_id: TemplateId,
        template_version: SemanticVersion,
        services: Vec<Service>,
        /// What was set for its server. Values that are secrets are masked.
        env: BTreeMap<String, String>,
        resources: Resources,
        /// Why it is not as it should be.
        last_error: Option<String>,
        /// The last output of the service that failed.
        last_log: Vec<String>,
        /// The container engine cannot be reached: the state is the last one known.
        stale: bool,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// One service of an instance.
    pub struct Service {
        role: Role,
        /// The name of the registered image, or of the deployment that built it.
        image: Slug,
        image_version: VersionName,
        /// What runs, once that is settled.
        image_digest: Option<String>,
        state: ServiceState,
        health: ServiceHealth,
        /// The port on the loopback address of the machine.
        port: Option<u16>,
        /// Where it is reached, for those that can be.
        url: Option<String>,
        /// How often it came to its end by itself and was started again.
        restarts: u32,
        /// Why the last new container of it, which was to take the place of this one, did not.
        given_up: Option<String>,
        /// What was set for it beyond its template. Values that are secrets are masked.
        env: BTreeMap<String, String>,
    }

    /// What one instance uses.
    pub struct Metrics {
        sampled_at: Timestamp,
        /// Of one processor; null while there is only one sample.
        cpu_percent: Option<f64>,
        memory_bytes: u64,
        memory_limit_bytes: u64,
        memory_percent: f64,
        network_rx_bytes: u64,
        network_tx_bytes: u64,
        pids: u64,
        services: Vec<ServiceMetrics>,
    }

    /// What one service of it uses.
    pub struct ServiceMetrics {
        role: Role,
        cpu_percent: Option<f64>,
        memory_bytes: u64,
        memory_limit_bytes: u64,
        memory_percent: f64,
        network_rx_bytes: u64,
        network_tx_bytes: u64,
        pids: u64,
    }
}

/// What the server of an instance may use. Databases and others have what their template says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// Megabytes of memory, 128 to 65536.
    #[schemars(range(min = 128, max = 65536))]
    pub memory_mb: u32,
    /// Processors, 0.1 to 64.
    #[schemars(range(min = 0.1, max = 64.0))]
    pub cpus: f64,
}

impl Default for Resources {
    fn default() -> Self {
        Resources { memory_mb: 512, cpus: 1.0 }
    }
}

/// What an instance is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum InstanceKind {
    /// The backend of an app.
    Backend,
    /// A market server.
    Market,
}

/// What a service is in its instance. They are started in this order, and stopped in the reverse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[schemars(rename = "ServiceRole")]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The document database.
    DocumentDb,
    /// The SQL database.
    SqlDb,
    /// The server itself.
    Server,
    /// The dashboard of a market server.
    Dashboard,
    /// The storefront of a market server.
    Storefront,
}

impl Role {
    /// Its name in container names and on the instance's network.
    pub const fn label(self) -> &'static str {
        match self {
            Role::DocumentDb => "documentdb",
            Role::SqlDb => "sqldb",
            Role::Server => "server",
            Role::Dashboard => "dashboard",
            Role::Storefront => "storefront",
        }
    }

    /// Whether it keeps the data.
    pub const fn is_database(self) -> bool {
        matches!(self, Role::DocumentDb | Role::SqlDb)
    }
}

/// The states of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstanceState {
    /// Its network, volumes and containers are being made.
    Provisioning,
    /// Its containers are coming up.
    Starting,
    /// All of it is well.
    Running,
    /// It runs, and some of it is not well.
    Degraded,
    /// Its containers are going down.
    Stopping,
    /// Nothing runs; its data is there.
    Stopped,
    /// It is going down, to come up again.
    Restarting,
    /// It could not be brought up, or did not stay up.
    Failed,
    /// It is being removed.
    Deleting,
    /// It is gone; its volumes are kept for a while.
    Deleted,
}

/// What was asked of an instance last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DesiredState {
    /// To run.
    Running,
    /// To be stopped.
    Stopped,
    /// To be gone.
    Deleted,
}

/// Whether a service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceState {
    /// There is no container yet, or none any more.
    Missing,
    /// It was never started.
    Created,
    /// It runs.
    Running,
    /// It came to its end.
    Exited,
}

/// Whether a service is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceHealth {
    /// It does not run, or nobody has looked.
    Unknown,
    /// Too early to say.
    Starting,
    /// Well.
    Healthy,
    /// Not well.
    Unhealthy,
}
