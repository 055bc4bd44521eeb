//! The lane of a service: one deployment is under way at a time, and the others wait in the order in
//! which they came. Who leaves it and who is next are one change.

use contract::{AppId, DeploymentId, deployments::DeploymentTarget};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use store::{Merge, Record};

/// How many deployments that served are remembered: what can be gone back to, and whose images stay.
pub const REMEMBERED: usize = 5;

/// The deployments of one service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The one under way.
    pub active: Option<DeploymentId>,
    /// Those that wait.
    pub waiting: VecDeque<DeploymentId>,
    /// Those that served, the latest first; the first one serves.
    pub served: VecDeque<DeploymentId>,
}

/// What a deployment tells its lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LaneDelta {
    /// It wants to go.
    Enter(DeploymentId),
    /// It serves now.
    Serves(DeploymentId),
    /// It has come to its end, and does not wait any more.
    Leave(DeploymentId),
}

impl Lane {
    /// The key of a service's lane.
    pub fn key(app: AppId, target: DeploymentTarget) -> String {
        let target = match target {
            DeploymentTarget::Backend => "backend",
            DeploymentTarget::MarketServer => "marketServer",
            DeploymentTarget::MarketDashboard => "marketDashboard",
            DeploymentTarget::MarketStorefront => "marketStorefront",
        };
        format!("{app}:{target}")
    }
}

impl Record for Lane {
    const TREE: &'static str = "lane";
    const SCHEMA: u16 = 1;
}

impl Merge for Lane {
    type Delta = LaneDelta;
    fn merge(old: Option<Self>, delta: &LaneDelta) -> Option<Self> {
        let mut lane = old.unwrap_or_default();
        match *delta {
            LaneDelta::Enter(id) if lane.active.is_none() => lane.active = Some(id),
            LaneDelta::Enter(id) => lane.waiting.push_back(id),
            LaneDelta::Serves(id) => {
                lane.served.retain(|served| *served != id);
                lane.served.push_front(id);
                lane.served.truncate(REMEMBERED);
            }
            LaneDelta::Leave(id) => {
                lane.waiting.retain(|waiting| *waiting != id);
                if lane.active == Some(id) {
                    lane.active = lane.waiting.pop_front();
                }
            }
        }
        Some(lane)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use contract::Id;

    #[test]
    fn who_leaves_makes_room_for_the_next() {
        let id = |n: u128| DeploymentId::of(ulid::Ulid(n));
        let mut lane = None;
        for n in 1..=3 {
            lane = Lane::merge(lane, &LaneDelta::Enter(id(n)));
        }
        lane = Lane::merge(lane, &LaneDelta::Serves(id(1)));
        lane = Lane::merge(lane, &LaneDelta::Leave(id(2)));
        lane = Lane::merge(lane, &LaneDelta::Leave(id(1)));
        let lane = lane.unwrap();
        assert_eq!((lane.active, lane.waiting.len()), (Some(id(3)), 0));
        assert_eq!(lane.served, [id(1)]);
    }
}
