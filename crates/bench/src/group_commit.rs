//! Group commit on sled alone: the least cost of a durable change.

use crate::outcome::{Explain, Outcome};
use std::{
    fs::File,
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
};
use tokio::sync::oneshot;

/// Bytes of a record.
const RECORD: usize = 500;
/// Number of records, which are overwritten in turn.
const RECORDS: u64 = 128;
const LARGEST_BATCH: usize = 1024;

/// The rows of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Rows {
    One,
    /// The rows of a change of the service: a record, a log entry and an index entry.
    Three,
}

/// A thread that writes for all waiting callers with one batch, one flush and one `fdatasync`.
pub struct GroupCommit {
    queue: mpsc::Sender<Write>,
    count: AtomicU64,
}

struct Write {
    number: u64,
    written: oneshot::Sender<()>,
}

impl GroupCommit {
    /// Starts the thread on a new store.
    pub fn start(at: &Path, rows: Rows) -> Outcome<GroupCommit> {
        let db = sled::Config::new().path(at).cache_capacity(64 << 20).flush_every_ms(None);
        let db = db.open().or_say("sled")?;
        let file = File::options().write(true).open(at.join("db")).or_say("sled's file")?;
        let (queue, writes) = mpsc::channel();
        std::thread::spawn(move || {
            if let Err(e) = commit_all(&db, &file, rows, &writes) {
                eprintln!("error: {e}");
            }
        });
        Ok(GroupCommit { queue, count: AtomicU64::new(0) })
    }

    /// Returns when the next write is on the disk.
    pub async fn write(&self) -> Outcome<()> {
        self.submit()?.await.or_say("the committer")
    }

    /// Like [`write`](GroupCommit::write), for a thread that may sleep.
    pub fn write_blocking(&self) -> Outcome<()> {
        self.submit()?.blocking_recv().or_say("the committer")
    }

    fn submit(&self) -> Outcome<oneshot::Receiver<()>> {
        let (written, told) = oneshot::channel();
        let number = self.count.fetch_add(1, Relaxed);
        self.queue.send(Write { number, written }).or_say("the committer")?;
        Ok(told)
    }
}

#[allow(clippy::disallowed_methods, reason = "the file is synced right after")]
fn commit_all(
    db: &sled::Db,
    file: &File,
    rows: Rows,
    queue: &mpsc::Receiver<Write>,
) -> Outcome<()> {
    let record = vec![b'x'; RECORD];
    while let Ok(first) = queue.recv() {
        let rest = queue.try_iter().take(LARGEST_BATCH - 1);
        let writes: Vec<Write> = std::iter::once(first).chain(rest).collect();
        let mut batch = sled::Batch::default();
        for Write { number, .. } in &writes {
            // Each value is unique, because sled skips writes that change nothing.
            let value = [number.to_be_bytes().as_slice(), &record].concat();
            batch.insert(format!("record/{}", number % RECORDS).into_bytes(), value.clone());
            if rows == Rows::Three {
                batch.insert(format!("log/{number:020}").into_bytes(), value);
                let entry = format!("index/log/record/{}/{number:020}", number % RECORDS);
                batch.insert(entry.into_bytes(), Vec::new());
            }
        }
        db.apply_batch(batch).or_say("sled")?;
        db.flush().or_say("sled")?;
        file.sync_data().or_say("sled's file")?;
        for write in writes {
            let _ = write.written.send(());
        }
    }
    Ok(())
}
