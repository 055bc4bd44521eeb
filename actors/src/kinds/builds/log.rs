//! The log of a build: one record for the lines of each report.

use crate::{call::pagination::position, runtime::store::Store, world::World};
use contract::{
    BuildId, Cursor, EventId, Fault, Timestamp,
    builds::{BuildLine, BuildLogs},
};
use serde::{Deserialize, Serialize};
use store::{Change, Entries, Record};

/// Lines of a log that came together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    pub of: BuildId,
    pub at: Timestamp,
    pub lines: Vec<String>,
}

impl Record for Chunk {
    const TREE: &'static str = "buildLog";
    const SCHEMA: u16 = 1;
    const CACHED: bool = false;
    type Key = EventId;
    type Content = Self;

    fn index(chunk: &Self) -> Entries<Self> {
        Entries::default().and(ChunkIndex::Of { build: chunk.of })
    }
}

store::entries! {
    pub enum ChunkIndex of Chunk {
        /// The log of one build, oldest lines first.
        Of { build: BuildId } = "of",
    }
}

/// How many records a page of a log has at most. A report makes one record for each 64 KiB of at most
/// [`MOST_LINES`](contract::runners::MOST_LINES) lines.
const PAGE: usize = 20;
/// How many lines a page has before its last record.
const ENOUGH_LINES: usize = 1_000;
/// How many records one call of [`forget`] removes.
const BATCH: usize = 100;

/// Appends a line of the service, without waiting for the write.
pub(super) fn say(world: &World, of: BuildId, line: String) {
    let at = world.ports.clock.now();
    let chunk = Chunk { of, at, lines: vec![line] };
    world.store.note(Change::new().append::<Chunk>(&world.ports.random.id(at), &chunk));
}

/// The log after the cursor. `ended`: no lines follow the stored ones.
pub(super) fn read(
    store: &Store,
    build: BuildId,
    cursor: Option<Cursor>,
    ended: bool,
) -> Result<BuildLogs, Fault> {
    let after = cursor.as_ref().map(position::<Chunk>).transpose()?;
    let keys = store.oldest::<Chunk>(&ChunkIndex::Of { build }, after.as_ref(), PAGE)?;
    let mut page = BuildLogs { lines: Vec::new(), next_cursor: cursor, done: ended };
    for (read, key) in keys.iter().enumerate() {
        if page.lines.len() >= ENOUGH_LINES {
            page.done = false;
            break;
        }
        if let Some(chunk) = store.get::<Chunk>(key)? {
            let line = |text: &String| BuildLine { at: chunk.at, text: text.clone() };
            page.lines.extend(chunk.lines.iter().map(line));
        }
        page.next_cursor = Some(Cursor::after(&key.to_string()));
        page.done = ended && read + 1 < PAGE;
    }
    Ok(page)
}

/// Removes a batch of the log. Returns whether none was left.
pub(super) async fn forget(world: &World, build: BuildId) -> Result<bool, Fault> {
    world.store.remove_oldest::<Chunk>(&ChunkIndex::Of { build }, BATCH).await
}
