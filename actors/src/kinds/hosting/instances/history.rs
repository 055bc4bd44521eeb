//! The deployment history of a service: the deployments that served it, the latest first. A
//! rollback restores one of them, and image clean-up keeps the images of the latest.

use super::{Definition, ServiceImage};
use crate::{
    ports::sealed::Sealed,
    runtime::side_record::{End, SideRecord},
};
use contract::{DeploymentId, InstanceId, deployments::DeploymentTarget, text::EnvName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use store::Merge;

/// Deployments that a history keeps.
const REMEMBERED: usize = 50;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeploymentHistory {
    /// The latest first.
    pub latest: VecDeque<DeploymentId>,
    /// What the service ran before its first deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Box<Created>>,
}

/// What a service ran before its first deployment: what its instance was created with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub definition: Definition,
    pub image: ServiceImage,
    /// Variables in addition to the template's.
    pub env: BTreeMap<EnvName, Sealed>,
}

/// What a rollback restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Earlier {
    /// The revision that this deployment brought.
    Deployment(DeploymentId),
    /// What the instance was created with.
    Created,
}

/// A deployment of the history, as [`before`] reads it.
#[derive(Debug, Clone, Copy)]
pub struct Past {
    pub id: DeploymentId,
    /// What the deployment restored, if it was a rollback.
    pub restores: Option<Earlier>,
    /// A rollback took the deployment back.
    pub taken_back: bool,
}

/// What a rollback of the first of these deployments restores: the last earlier one that was not
/// taken back, or else what the instance was created with. A rollback runs what an earlier
/// deployment brought, so the search goes on before that deployment. The latest deployment comes
/// first.
pub fn before(past: &[Past]) -> Option<Earlier> {
    let (mut serves, mut older) = past.split_first()?;
    while let Some(restores) = serves.restores {
        let Earlier::Deployment(restored) = restores else { return None };
        let at = older.iter().position(|past| past.id == restored);
        let Some((found, rest)) = at.and_then(|at| older.get(at..)?.split_first()) else {
            return Some(Earlier::Created);
        };
        (serves, older) = (found, rest);
    }
    let before = older.iter().find(|past| !past.taken_back);
    Some(before.map_or(Earlier::Created, |past| Earlier::Deployment(past.id)))
}

impl DeploymentHistory {
    /// The keys of all services that an instance may have.
    pub fn keys(instance: InstanceId) -> impl Iterator<Item = String> {
        use DeploymentTarget::{Backend, MarketDashboard, MarketServer, MarketStorefront};
        let all = [Backend, MarketServer, MarketDashboard, MarketStorefront];
        all.into_iter().map(move |target| DeploymentHistory::key(instance, target))
    }

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

impl SideRecord for DeploymentHistory {
    fn end(&self) -> End {
        End::WithKey
    }

    fn named_by(key: &String) -> String {
        key.split_once(':').map_or(key.as_str(), |(instance, _)| instance).to_owned()
    }
}

/// A deployment that serves from this moment on.
#[derive(Debug, Clone)]
pub struct Serving {
    pub id: DeploymentId,
    /// What the deployment replaced, if no deployment had brought that.
    pub created: Option<Box<Created>>,
}

/// A delta of `None` removes the record together with its instance.
impl Merge for DeploymentHistory {
    type Delta = Option<Serving>;
    fn merge(old: Option<Self>, serving: &Option<Serving>) -> Option<Self> {
        let Serving { id, created } = serving.as_ref()?;
        let mut served = old.unwrap_or_default();
        served.latest.retain(|before| before != id);
        served.latest.push_front(*id);
        served.latest.truncate(REMEMBERED);
        served.created = served.created.or_else(|| created.clone());
        Some(served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    const A: u128 = 1;
    const B: u128 = 2;
    const C: u128 = 3;

    fn id(n: u128) -> DeploymentId {
        DeploymentId::of(Ulid(n))
    }

    fn served(n: u128) -> Past {
        Past { id: id(n), restores: None, taken_back: false }
    }

    fn taken_back(n: u128) -> Past {
        Past { taken_back: true, ..served(n) }
    }

    fn restoring(n: u128, restored: u128) -> Past {
        Past { restores: Some(Earlier::Deployment(id(restored))), ..served(n) }
    }

    fn to(n: u128) -> Option<Earlier> {
        Some(Earlier::Deployment(id(n)))
    }

    #[test]
    fn each_rollback_goes_one_further_back() {
        assert_eq!(before(&[]), None);
        assert_eq!(before(&[served(C), served(B), served(A)]), to(B));
        let once = [restoring(4, B), taken_back(C), served(B), served(A)];
        assert_eq!(before(&once), to(A), "neither what was taken back nor the same again");
        let twice =
            [restoring(5, A), Past { taken_back: true, ..once[0] }, once[1], once[2], once[3]];
        assert_eq!(before(&twice), Some(Earlier::Created));
        let last = Past { restores: Some(Earlier::Created), ..served(6) };
        assert_eq!(before(&[last, served(A)]), None, "nothing was before the creation");
    }

    #[test]
    fn a_deployment_after_a_rollback_goes_back_to_the_rollback() {
        let past = [served(5), restoring(4, A), taken_back(B), served(A)];
        assert_eq!(before(&past), to(4));
        let back =
            [restoring(6, 4), Past { taken_back: true, ..past[0] }, past[1], past[2], past[3]];
        assert_eq!(before(&back), Some(Earlier::Created), "4 ran what 1 brought");
    }

    #[test]
    fn what_was_taken_back_can_be_restored_and_left_again() {
        let past = [restoring(4, B), served(3), taken_back(B), served(A)];
        assert_eq!(before(&past), to(A));
    }

    #[test]
    fn what_is_forgotten_leaves_the_creation() {
        assert_eq!(before(&[restoring(4, A)]), Some(Earlier::Created));
    }
}
