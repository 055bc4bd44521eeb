//! What takes its time says how it goes: a line each, written as it comes.

use crate::world::World;
use contract::{EventId, Fault, Timestamp, deployments::StepName};
use serde::{Deserialize, Serialize};
use store::{Change, Entries, Record};

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
    type Key = EventId;
    type Content = Self;

    fn index(line: &Self) -> Entries<Self> {
        Entries::default().and(LineIndex::of(&line.of))
    }
}

store::entries! {
    /// What lines are found by.
    pub enum LineIndex of Line {
        /// Those of one deployment or build.
        Of { id: String } = "of",
    }
}

impl LineIndex {
    /// The lines of one deployment or build.
    pub fn of(id: impl std::fmt::Display) -> Self {
        LineIndex::Of { id: id.to_string() }
    }
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
        change.append::<Line>(&key, &Line { of: of.to_string(), at, step, text })
    });
    world.store.note(lines);
}

/// Lines removed at a time.
const BATCH: usize = 500;

/// Removes somebody's lines; whether none is left.
pub async fn forget(world: &World, of: impl std::fmt::Display) -> Result<bool, Fault> {
    let keys = world.store.oldest::<Line>(&LineIndex::of(of), None, BATCH)?;
    let mut change = Change::new();
    for key in &keys {
        if let Some(line) = world.store.get::<Line>(key)? {
            change = change.remove::<Line>(key, &line);
        }
    }
    world.store.commit(change).await?;
    Ok(keys.is_empty())
}
