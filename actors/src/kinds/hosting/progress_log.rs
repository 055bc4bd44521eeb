//! The progress log: the output of deployments and builds, one record for each line.

use crate::{
    kinds::world::World,
    runtime::{
        pagination::position,
        side_record::{End, SideRecord},
        store::Store,
    },
};
use contract::{Cursor, EventId, Fault, Timestamp, deployments::StepName};
use serde::{Deserialize, Serialize};
use store::{Change, Entries};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The id of the deployment or build.
    pub of: String,
    pub at: Timestamp,
    pub step: StepName,
    pub text: String,
}

/// Longer lines are cut, in characters.
const LONGEST: usize = 2_000;

impl SideRecord for Line {
    fn end(&self) -> End {
        End::With(self.of.clone())
    }

    fn index(&self) -> Entries<Self> {
        Entries::default().and(LineIndex::of(&self.of))
    }
}

store::entries! {
    pub enum LineIndex of Line {
        /// The lines of one deployment or build.
        Of { id: String } = "of",
    }
}

impl LineIndex {
    pub fn of(id: impl std::fmt::Display) -> Self {
        LineIndex::Of { id: id.to_string() }
    }
}

/// Appends lines, without waiting for the write. Their keys sort by time.
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

/// Lines on one page.
const LINES: usize = 500;

/// One page of the lines of a deployment or build, oldest first.
pub struct LinesPage {
    pub lines: Vec<Line>,
    /// The cursor of the next page; unchanged if there are no new lines.
    pub next_cursor: Option<Cursor>,
    /// Whether more lines may already exist.
    pub more: bool,
}

impl LinesPage {
    /// The lines after the cursor.
    pub fn read(
        store: &Store,
        of: impl std::fmt::Display,
        cursor: Option<Cursor>,
    ) -> Result<LinesPage, Fault> {
        let after = cursor.as_ref().map(position::<Line>).transpose()?;
        let (mut lines, mut next_cursor) = (Vec::new(), cursor);
        for found in store.oldest::<Line>(&LineIndex::of(of), after.as_ref()).take(LINES) {
            let (key, line) = found?;
            lines.push((**line).clone());
            next_cursor = Some(Cursor::after(&key.to_string()));
        }
        let more = lines.len() == LINES;
        Ok(LinesPage { lines, next_cursor, more })
    }
}

/// The size of the lines of a deployment or build, in bytes. Others get a turn between two pages.
pub async fn bytes(world: &World, of: impl std::fmt::Display) -> Result<u64, Fault> {
    let (mut bytes, mut cursor) = (0, None);
    loop {
        let page = LinesPage::read(&world.store, &of, cursor)?;
        bytes += page.lines.iter().map(|line| line.text.len() as u64 + 1).sum::<u64>();
        if !page.more {
            return Ok(bytes);
        }
        cursor = page.next_cursor;
        tokio::task::yield_now().await;
    }
}

/// How many lines one call of [`forget`] removes.
const BATCH: usize = 500;

/// Removes a batch of the lines of a deployment or build. Returns whether none was left.
pub async fn forget(world: &World, of: impl std::fmt::Display) -> Result<bool, Fault> {
    world.store.remove_oldest::<Line>(&LineIndex::of(of), BATCH).await
}
