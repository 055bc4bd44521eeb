//! What a deployment says: a line each, written as it comes.

use crate::world::World;
use contract::{DeploymentId, EventId, Timestamp, deployments::StepName};
use serde::{Deserialize, Serialize};
use store::{Change, Record};

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Whose.
    pub deployment: DeploymentId,
    /// When it was written.
    pub at: Timestamp,
    /// While it did this.
    pub step: StepName,
    /// What it said.
    pub text: String,
}

/// The longest line that is kept, in characters.
const LONGEST: usize = 2_000;

impl Record for Line {
    const TREE: &'static str = "deploymentLine";
    const SCHEMA: u16 = 1;

    fn index(&self) -> Vec<String> {
        vec![format!("deployment/{}", self.deployment)]
    }
}

/// The lines that were said, to be written with whatever else changes. Keys sort by time.
pub fn lines(
    world: &World,
    deployment: DeploymentId,
    step: StepName,
    said: impl IntoIterator<Item = String>,
) -> Change {
    let at = world.ports.clock.now();
    said.into_iter().fold(Change::new(), |change, text| {
        let text = text.chars().take(LONGEST).collect();
        let key: EventId = world.ports.random.id(at);
        change.append(&key.to_string(), &Line { deployment, at, step, text })
    })
}

/// Writes what was said. Whoever reads on sees it a moment later.
pub fn say(
    world: &World,
    deployment: DeploymentId,
    step: StepName,
    said: impl IntoIterator<Item = String>,
) {
    world.store.note(lines(world, deployment, step, said));
}
