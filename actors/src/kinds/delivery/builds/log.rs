//! The log of a build: records of lines that came together.

use crate::{
    kinds::world::World,
    runtime::{
        pagination::position,
        side_record::{End, SideRecord},
        store::Store,
    },
};
use contract::{
    BuildId, Cursor, EventId, Fault, Id, Timestamp,
    builds::{BuildLine, BuildLogs},
};
use serde::{Deserialize, Serialize};
use store::{Change, Entries};

/// Lines of a log that came together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    pub of: BuildId,
    pub at: Timestamp,
    pub lines: Vec<String>,
}

impl SideRecord for Chunk {
    fn end(&self) -> End {
        End::With(self.of.to_string())
    }

    fn index(&self) -> Entries<Self> {
        Entries::default().and(ChunkIndex::Of { build: self.of })
    }
}

store::entries! {
    pub enum ChunkIndex of Chunk {
        /// The log of one build, oldest lines first.
        Of { build: BuildId } = "of",
    }
}

/// How many bytes the lines of one record have at most, if they are not one line. sled reads and keeps up to
/// 16 records together, and lets go of the oldest only after many reads, however large they are: with larger
/// records, it keeps whole logs in memory.
const RECORD_BYTES: usize = 4 << 10;
/// How many records a page of a log has at most.
const PAGE: usize = 300;
/// How many lines, and how many bytes of them, a page has before its last record.
const ENOUGH_LINES: usize = 1_000;
const ENOUGH_BYTES: usize = 1 << 20;
/// How many records one call of [`forget`] removes.
const BATCH: usize = 500;

/// New lines of the log.
#[derive(Default)]
pub(super) struct NewLines(pub Vec<String>);

impl NewLines {
    /// The size of the lines.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|line| line.len() as u64 + 1).sum()
    }

    /// Appends the lines, in as many records as they need. The first one gets the key, and the others
    /// the keys that follow it.
    pub fn into_change(self, of: BuildId, at: Timestamp, key: &EventId) -> Change {
        let next = |key: &EventId| key.unique().increment().ok().map(EventId::of);
        let keys = std::iter::successors(Some(*key), next);
        let append =
            |change: Change, (key, lines)| change.append::<Chunk>(&key, &Chunk { of, at, lines });
        keys.zip(self.chunks()).fold(Change::new(), append)
    }

    fn chunks(self) -> Vec<Vec<String>> {
        let mut chunks: Vec<Vec<String>> = Vec::new();
        let mut left = 0;
        for line in self.0 {
            if chunks.is_empty() || line.len() > left {
                left = RECORD_BYTES;
                chunks.push(Vec::new());
            }
            left = left.saturating_sub(line.len());
            if let Some(chunk) = chunks.last_mut() {
                chunk.push(line);
            }
        }
        chunks
    }
}

/// Appends a line of the service, without waiting for the write.
pub(crate) fn say(world: &World, of: BuildId, line: String) {
    let at = world.ports.clock.now();
    let chunk = Chunk { of, at, lines: vec![line] };
    world.store.note(Change::new().append::<Chunk>(&world.ports.random.id(at), &chunk));
}

/// The log after the cursor. `ended`: no lines follow the stored ones.
pub(crate) fn read(
    store: &Store,
    build: BuildId,
    cursor: Option<Cursor>,
    ended: bool,
) -> Result<BuildLogs, Fault> {
    let after = cursor.as_ref().map(position::<Chunk>).transpose()?;
    let chunks = store.oldest::<Chunk>(&ChunkIndex::Of { build }, after.as_ref());
    let mut page = BuildLogs { lines: Vec::new(), next_cursor: cursor, done: ended };
    let mut bytes = 0;
    for (read, found) in chunks.take(PAGE).enumerate() {
        if page.lines.len() >= ENOUGH_LINES || bytes >= ENOUGH_BYTES {
            page.done = false;
            break;
        }
        let (key, chunk) = found?;
        bytes += chunk.lines.iter().map(String::len).sum::<usize>();
        let line = |text: &String| BuildLine { at: chunk.at, text: text.clone() };
        page.lines.extend(chunk.lines.iter().map(line));
        page.next_cursor = Some(Cursor::after(&key.to_string()));
        page.done = ended && read + 1 < PAGE;
    }
    Ok(page)
}

/// Removes a batch of the log. Returns whether none was left.
pub(super) async fn forget(world: &World, build: BuildId) -> Result<bool, Fault> {
    world.store.remove_oldest::<Chunk>(&ChunkIndex::Of { build }, BATCH).await
}
