//! Start-up with a million stored resources.

use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use std::{path::Path, time::Duration};

pub const METHOD: &str = "A store is filled with a million projects, each with its index entry. \
    Timed is from the start of the program to its first 200 on `/readyz`, files in the page cache. \
    The yardstick is the same program with an empty store.";

const RESOURCES: usize = 1_000_000;
const AIM: Duration = Duration::from_secs(1);
const MOST_MEMORY: u64 = 200 << 20;
/// The most memory of an idle server, in bytes.
const MOST_IDLE: u64 = 40_000_000;
const BINDS: &str =
    "sled reads its page table and replays its last segments before the first look-up.";

/// Measures the start with a full store against the start with an empty store.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (full, empty) = (machine::scratch()?, machine::scratch()?);
    let store = seed::open(full.path())?;
    actix_rt::System::new().block_on(seed::projects(&store, RESOURCES))?;
    store.close();
    drop(store);
    // The first start of the empty store makes its keys, so its time does not count.
    start(full.path())?;
    let (_, first) = start(empty.path())?;
    let (mut ours, mut yardstick) = (Vec::new(), Vec::new());
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        yardstick.push(start(empty.path())?);
        ours.push(start(full.path())?);
    }
    let (time, memory) = median(ours)?;
    let (bare_time, bare_memory) = median(yardstick)?;
    let millis =
        |time: Duration| (time.as_secs_f64() * 1e3, format!("{:.0} ms", time.as_secs_f64() * 1e3));
    let mib = |bytes: u64| (bytes as f64, format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20)));
    let empty = |(value, text): (f64, String)| (value, format!("{text}, an empty store"));
    Ok(vec![
        Row::new("start-up with 1,000,000 resources", millis(time), empty(millis(bare_time))).aim(
            "under 1 s".into(),
            time < AIM,
            BINDS,
        ),
        Row::new("memory after that start", mib(memory), empty(mib(bare_memory))).aim(
            "under 200 MiB".into(),
            memory < MOST_MEMORY,
            "the pages of the store that the start reads.",
        ),
        Row::new("memory of an idle server, first start", mib(first), mib(MOST_IDLE)).aim(
            "under 40 MB".into(),
            first < MOST_IDLE,
            "pages of the program that a start touches, which the system may take back at any time; some 20 \
             MB are the server's own.",
        ),
    ])
}

/// The time until the service is ready, and its memory then.
fn start(home: &Path) -> Outcome<(Duration, u64)> {
    let server = Server::start(home, machine::half_of_the_processors())?;
    let seen = (server.started_in, machine::resident(Some(server.process()))?);
    server.stop()?;
    Ok(seen)
}

fn median(mut all: Vec<(Duration, u64)>) -> Outcome<(Duration, u64)> {
    all.sort();
    all.get(all.len() / 2).copied().or_say("a measurement")
}
