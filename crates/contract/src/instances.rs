//! Instances: backends and market servers in containers.

use crate::{
    AppId, BackupId, InstanceId, Name, ProjectId, TemplateId, Timestamp, VersionName,
    images::Advisory,
    templates::SemanticVersion,
    text::{Reason, Slug},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

records! {
    /// A backend or market server with all its services.
    pub struct Instance {
        id: InstanceId,
        app_id: AppId,
        project_id: ProjectId,
        /// Whether it is a backend or a market server.
        kind: InstanceKind,
        /// What people call the instance. It need not be unique.
        name: Name,
        /// Where the instance stands as a whole.
        state: InstanceState,
        /// The state that was requested last.
        desired_state: DesiredState,
        /// The address of the instance's server.
        url: String,
        template_id: TemplateId,
        /// The version of the template that the server runs.
        template_version: SemanticVersion,
        /// The services of the instance, in the order in which they start.
        services: Vec<Service>,
        /// The environment that was set for the server. Values are masked, except those that the
        /// template declares as plain.
        env: BTreeMap<String, String>,
        /// The limits of the server.
        resources: Resources,
        /// What its volumes and containers held on the disk when they were measured last, in bytes. Null
        /// until then.
        disk_bytes: Option<u64>,
        /// The backup that the instance is created from, until it is restored. The server starts
        /// after that.
        from_backup_id: Option<BackupId>,
        /// Why the instance is not in its desired state.
        last_error: Option<String>,
        /// The end of the log of the service that failed, or of the new container that did not replace the
        /// current one.
        last_log: Vec<String>,
        /// Whether the container engine is unreachable. The state is then the last known one.
        stale: bool,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// One service of an instance.
    pub struct Service {
        /// Which service of the instance it is.
        role: Role,
        /// The name of the registered image, or of the deployment that built the image.
        image: Slug,
        /// The version of the image. `git` for one that was built from a repository, and the
        /// beginning of the hash for one from a folder.
        image_version: VersionName,
        /// The digest of the running image, once known.
        image_digest: Option<String>,
        /// What the service's container does.
        state: ServiceState,
        /// What the last health check found. Without a health check, a running container is
        /// healthy.
        health: ServiceHealth,
        /// The port on the loopback address of the service's machine.
        port: Option<u16>,
        /// The address of the service, if it can be reached.
        url: Option<String>,
        /// How often the service exited by itself and was restarted.
        restarts: u32,
        /// Whether the volume with its data is gone from the machine. The service starts when the
        /// volume is back, or with `acceptDataLoss`.
        volume_gone: bool,
        /// Why the last new container of the service did not replace the current one.
        given_up: Option<String>,
        /// Why the service should get another version of its image. Null if nothing is known against
        /// its version.
        outdated: Option<Outdated>,
        /// The environment that was set in addition to the template. Values are masked, except
        /// those that the template declares as plain.
        env: BTreeMap<String, String>,
    }

    /// What is known against the version of an image that a service runs.
    pub struct Outdated {
        /// Whether the version is deprecated.
        deprecated: bool,
        /// Why it is deprecated.
        reason: Option<Reason>,
        /// Its known security advisories.
        advisories: Vec<Advisory>,
        /// The newest version of the image against which nothing is known. Deploy it.
        better: Option<VersionName>,
    }

    /// The resource usage of an instance.
    pub struct Metrics {
        sampled_at: Timestamp,
        /// Percent of one processor. Null until there are two samples.
        cpu_percent: Option<f64>,
        memory_bytes: u64,
        memory_limit_bytes: u64,
        memory_percent: f64,
        network_rx_bytes: u64,
        network_tx_bytes: u64,
        pids: u64,
        /// The usage of each service that runs.
        services: Vec<ServiceMetrics>,
    }

    /// The resource usage of one service.
    pub struct ServiceMetrics {
        /// Which service of the instance it is.
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

/// Resource limits of an instance's server. The template sets the limits of other services.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// Memory in megabytes, from 128 to 65536.
    #[schemars(range(min = 128, max = 65536))]
    pub memory_mb: u32,
    /// Number of processors, from 0.1 to 64.
    #[schemars(range(min = 0.1, max = 64.0))]
    pub cpus: f64,
}

impl Default for Resources {
    fn default() -> Self {
        Resources { memory_mb: 512, cpus: 1.0 }
    }
}

/// The kinds of instances.
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

/// The services of an instance. They start in this order and stop in reverse order.
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
    /// The name in container names and on the instance's network.
    pub const fn label(self) -> &'static str {
        match self {
            Role::DocumentDb => "documentdb",
            Role::SqlDb => "sqldb",
            Role::Server => "server",
            Role::Dashboard => "dashboard",
            Role::Storefront => "storefront",
        }
    }

    /// Whether the service stores the instance's data.
    pub const fn is_database(self) -> bool {
        matches!(self, Role::DocumentDb | Role::SqlDb)
    }
}

/// Where an instance stands as a whole. Each of its services has a state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstanceState {
    /// The network, volumes and containers are being created.
    Provisioning,
    /// The containers are starting.
    Starting,
    /// All services are healthy.
    Running,
    /// The instance runs, but a service is not healthy.
    Degraded,
    /// The containers are stopping.
    Stopping,
    /// Nothing runs. The data is kept.
    Stopped,
    /// The instance stops and then starts again.
    Restarting,
    /// The instance did not start or did not stay up.
    Failed,
    /// The instance is being deleted.
    Deleting,
    /// The instance is deleted. Its volumes are kept for seven days, unless their deletion was
    /// requested.
    Deleted,
}

/// The state that was requested last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DesiredState {
    /// The instance should run.
    Running,
    /// The instance should be stopped.
    Stopped,
    /// The instance should be deleted.
    Deleted,
}

/// The states of a service's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceState {
    /// There is no container.
    Missing,
    /// The container was never started.
    Created,
    /// The container runs.
    Running,
    /// The container exited.
    Exited,
}

/// What the health check of a service found last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceHealth {
    /// The service does not run or has not been checked.
    Unknown,
    /// The service has just started.
    Starting,
    /// The health check succeeds.
    Healthy,
    /// The health check fails.
    Unhealthy,
}
