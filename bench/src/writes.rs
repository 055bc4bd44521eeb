//! Durable changes a second: a call that writes, against the disk alone.

use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
    wrk::{self, Answers, CONNECTIONS, Load},
};
use std::{
    fs::File,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// How it is measured.
pub const METHOD: &str = "`wrk` with 64 connections calls `updateProfile` for 128 users; each call \
    writes the account, an audit entry and its index entry, and is answered when they are on the \
    disk. The yardstick is one thread that commits 500 byte records of 64 waiting writers to sled: \
    one batch, one flush, one `fdatasync`, then the acknowledgements.";

const USERS: usize = 128;
/// Bytes of a record of the yardstick.
const RECORD: usize = 500;
/// Records of one batch of the yardstick.
const LARGEST_BATCH: usize = 1024;
const AIM: f64 = 0.6;
const BINDS: &str = "not the disk: where it was traced, `fdatasync` took a ninth of the committer's time. A call \
    writes three rows where the yardstick writes one, and passes four threads; these, sled's own \
    and the load generator share the processors, and a batch gathers about 26 of the 64 calls.";

/// `updateProfile` against raw group commit.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server =
        Server::start(home.path(), pace.workers.unwrap_or_else(machine::half_of_the_processors))?;
    let sessions = server.register(USERS)?;
    let body = |n| format!(r#"{{"name":"User {n}","company":"Example"}}"#);
    let load = Load {
        address: server.client.address,
        path: "/backend/functions/updateProfile".into(),
        application_id: server.client.application_id.clone(),
        requests: sessions.into_iter().enumerate().map(|(n, s)| (s, body(n))).collect(),
    };
    let raw = Raw::open(&home.path().join("raw"))?;
    let (mut ours, mut yardstick) = (Vec::new(), Vec::new());
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        yardstick.push(raw.run(Duration::from_secs(pace.seconds))?);
        ours.push(load.run(home.path(), pace.seconds)?);
    }
    yardstick.sort_by(f64::total_cmp);
    let yardstick = *yardstick.get(yardstick.len() / 2).or_say("a measurement")?;
    let Answers { rate, median_ms, p99_ms } = wrk::median(ours)?;
    let row = Row::new(
        "durable `updateProfile` calls",
        (rate, format!("{rate:.0}/s (median {median_ms:.2} ms, p99 {p99_ms:.2} ms)")),
        (yardstick, format!("{yardstick:.0}/s, sled with group commit")),
    );
    Ok(vec![row.at_least(AIM, BINDS)])
}

/// sled, one committer, and nothing around them.
struct Raw {
    db: sled::Db,
    file: File,
}

/// A record that waits for the disk.
struct Write {
    key: usize,
    written: oneshot::Sender<()>,
}

impl Raw {
    fn open(at: &Path) -> Outcome<Raw> {
        let db = sled::Config::new().path(at).cache_capacity(64 << 20).flush_every_ms(None);
        let db = db.open().or_say("sled")?;
        let file = File::options().write(true).open(at.join("db")).or_say("sled's file")?;
        Ok(Raw { db, file })
    }

    /// Records a second that were written and acknowledged.
    fn run(&self, time: Duration) -> Outcome<f64> {
        let (queue, writes) = mpsc::channel();
        let begun = Instant::now();
        thread::scope(|scope| {
            let committer = scope.spawn(move || self.commit_all(writes));
            let writer = |key| {
                let queue = queue.clone();
                async move {
                    let mut count = 0_u64;
                    while begun.elapsed() < time {
                        let (written, told) = oneshot::channel();
                        if queue.send(Write { key, written }).is_err() || told.await.is_err() {
                            break;
                        }
                        count += 1;
                    }
                    count
                }
            };
            let writers = futures_util::future::join_all((0..CONNECTIONS).map(writer));
            let counts = actix_rt::System::new().block_on(writers);
            drop(queue);
            committer.join().map_err(|_| "the committer panicked")??;
            Ok(counts.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
        })
    }

    fn commit_all(&self, queue: mpsc::Receiver<Write>) -> Outcome<()> {
        let record = vec![b'x'; RECORD];
        while let Ok(first) = queue.recv() {
            let rest = queue.try_iter().take(LARGEST_BATCH - 1);
            let writes: Vec<Write> = std::iter::once(first).chain(rest).collect();
            let mut batch = sled::Batch::default();
            for write in &writes {
                batch.insert(&write.key.to_be_bytes(), record.as_slice());
            }
            self.db.apply_batch(batch).or_say("sled")?;
            self.db.flush().or_say("sled")?;
            self.file.sync_data().or_say("sled's file")?;
            for write in writes {
                let _ = write.written.send(());
            }
        }
        Ok(())
    }
}
