//! The deployments that served a service, the latest first: what can be gone back to, and whose
//! images stay.

use contract::{DeploymentId, InstanceId, deployments::DeploymentTarget};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use store::{Merge, Record};

/// How many are remembered.
pub const REMEMBERED: usize = 5;

/// The deployments that served a service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The first one serves.
    pub latest: VecDeque<DeploymentId>,
}

impl Served {
    /// The keys of all services that an instance may have.
    pub fn keys(instance: InstanceId) -> impl Iterator<Item = String> {
        use DeploymentTarget::{Backend, MarketDashboard, MarketServer, MarketStorefront};
        let all = [Backend, MarketServer, MarketDashboard, MarketStorefront];
        all.into_iter().map(move |target| Served::key(instance, target))
    }

    /// The key of a service.
    pub fn key(instance: InstanceId, target: DeploymentTarget) -> String {
        let target = match target {
            DeploymentTarget::Backend => "backend",
            DeploymentTarget::MarketServer => "marketServer",
            DeploymentTarget::MarketDashboard => "marketDashboard",
            DeploymentTarget::MarketStorefront => "marketStorefront",
        };
        format!("{instance}:{target}")
    }
}

impl Record for Served {
    const TREE: &'static str = "served";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

/// A deployment serves from now on; or the instance goes, and the record with it.
impl Merge for Served {
    type Delta = Option<DeploymentId>;
    fn merge(old: Option<Self>, serves: &Option<DeploymentId>) -> Option<Self> {
        let id = (*serves)?;
        let mut served = old.unwrap_or_default();
        served.latest.retain(|before| *before != id);
        served.latest.push_front(id);
        served.latest.truncate(REMEMBERED);
        Some(served)
    }
}
