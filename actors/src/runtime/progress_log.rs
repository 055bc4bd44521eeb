//! What takes its time says how it goes: a line each, written as it comes.

use crate::world::World;
use contract::{EventId, Timestamp, deployments::StepName};
use serde::{Deserialize, Serialize};
use store::{Change, Record, StoreError};

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Whose: a deployment, or a build.
    pub of: String,
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
    const TREE: &'static str = "logLine";
    const SCHEMA: u16 = 1;

    fn index(&self) -> Vec<String> {
        vec![entry(&self.of)]
    }
}

/// The index entry of somebody's lines.
pub fn entry(of: impl std::fmt::Display) -> String {
    format!("of/{of}")
}

/// Writes what was said. Whoever reads on sees it a moment later. Keys sort by time.
pub fn say(
    world: &World,
    of: impl std::fmt::Display,
    step: StepName,
    said: impl IntoIterator<Item = String>,
) {
    let at = world.ports.clock.now();
    let lines = said.into_iter().fold(Change::new(), |change, text| {
        let text = text.chars().take(LONGEST).collect();
        let key: EventId = world.ports.random.id(at);
        change.append(&key.to_string(), &Line { of: of.to_string(), at, step, text })
    });
    world.store.note(lines);
}

/// Lines removed at a time.
const BATCH: usize = 500;

/// Removes somebody's lines; whether none is left.
pub async fn forget(world: &World, of: impl std::fmt::Display) -> Result<bool, StoreError> {
    let keys = world.store.oldest::<Line>(&entry(of), None, BATCH)?;
    let mut change = Change::new();
    for key in &keys {
        if let Some(line) = world.store.get::<Line>(key)? {
            change = change.remove(key, line.as_ref());
        }
    }
    world.store.commit(change).await?;
    Ok(keys.is_empty())
}
