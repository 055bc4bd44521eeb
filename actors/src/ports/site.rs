//! This installation.

use super::instance_domain::InstanceDomain;
use contract::{
    AppId, InstanceId, WebUrl,
    authentication::Tier,
    endpoint::instances::PREFIX,
    instances::{InstanceKind, Role},
    quotas::Quotas,
    retention::Retentions,
    service::Registration,
    text::PlanCode,
};
use std::{collections::BTreeMap, time::Duration};

/// The identity and the configuration of this installation.
#[derive(Debug, Clone)]
pub struct Site {
    /// The application id. Labels the objects of this installation in the container engine.
    pub installation: String,
    /// The base address for clients, without a slash at the end.
    pub api_url: String,
    /// `None`: instances are reached by the paths of [`Site::api_url`].
    pub instance_domain: Option<InstanceDomain>,
    /// Whether a page that is opened by the path of an instance has no origin.
    pub sandboxes_paths: bool,
    /// The host names in the addresses of the service and of its dashboard.
    pub own_hosts: Vec<String>,
    pub registration: Registration,
    /// The address of the GitHub whose repositories the service reaches through its GitHub App.
    pub github: Option<WebUrl>,
    /// The app to whose plans people subscribe for a higher tier here.
    pub platform_app: Option<AppId>,
    /// The tiers that the plans of that app give.
    pub platform_plans: BTreeMap<PlanCode, Tier>,
    /// How much organizations may have.
    pub quotas: Quotas,
    /// How long the service keeps what is over.
    pub retentions: Retentions,
    /// How many times the memory and the processors of the machine may be promised to instances.
    pub overcommit: Overcommit,
    /// How long a deployment may take from its turn until it serves.
    pub deployment_limit: Duration,
    /// How long a build of an image may take from its turn.
    pub image_build_limit: Duration,
    /// How much of the machine an isolated build may have.
    pub build_size: BuildSize,
}

/// How much of the machine an isolated build may have.
#[derive(Debug, Clone, Copy)]
pub struct BuildSize {
    /// Bytes.
    pub memory: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// Bytes.
    pub disk: u64,
}

/// How many times what a machine has may be promised to instances, since few use all that they may.
#[derive(Debug, Clone, Copy)]
pub struct Overcommit {
    pub memory: f64,
    pub cpus: f64,
}

impl Site {
    /// The base URL of functions.
    pub fn functions_url(&self) -> String {
        format!("{}{}", self.api_url, contract::endpoint::BASE_PATH)
    }

    /// The public address of a service of an instance.
    pub fn service_url(
        &self,
        (id, kind): (InstanceId, InstanceKind),
        app: AppId,
        role: Role,
    ) -> String {
        let target = match (role, kind) {
            (Role::Server, InstanceKind::Backend) => app.to_string(),
            (Role::Server, InstanceKind::Market) => id.to_string(),
            (role, _) => format!("{id}~{}", role.label()),
        };
        match &self.instance_domain {
            Some(domain) => domain.url(&target),
            None => self.path_url(&target),
        }
    }

    /// The address by a path of the service, which also works with a domain for instances.
    pub fn path_url(&self, target: &str) -> String {
        format!("{}{PREFIX}{target}", self.api_url)
    }
}
