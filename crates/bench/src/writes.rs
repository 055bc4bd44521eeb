//! Durable changes per second: calls that write, against the disk alone.

use crate::{
    Pace, echo,
    group_commit::{GroupCommit, Rows},
    machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
    wrk::{self, Answers, CONNECTIONS, Load},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

pub const METHOD: &str = "`wrk` with 64 connections calls `updateProfile` for 128 users; each call \
    writes the account, an audit entry and its index entry, and is answered when they are on the \
    disk. The first yardstick is group commit alone: one thread that writes 500 byte records of 64 \
    waiting writers to sled with one batch, one flush and one `fdatasync`, then the \
    acknowledgements. The others are what is left when all that the service does is taken away: \
    the same requests to a bare actix-web server that reads the JSON, passes it to that thread, \
    and answers it once it is durable; with one row for each request, and with three as the \
    service writes them.";

const USERS: usize = 128;
const AIM: f64 = 0.8;
const AIM_OF_ONE_ROW: f64 = 0.5;
const AIM_OF_DISK: f64 = 0.2;
const BINDS: &str = "processor time, in small parts, of what a call does besides its write: \
    authentication, look-up, the rate limit, the decision, and the JSON of the record and of its \
    audit entry. It is not the hops between threads: with the owners on the worker's thread it is \
    slower.";

/// Measures `updateProfile` against group commit, alone and behind a bare server.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server = Server::start(home.path(), pace.http_workers())?;
    let sessions = server.register(USERS)?;
    let body = |n| format!(r#"{{"name":"User {n}","company":"Example"}}"#);
    let load = Load {
        address: server.client.address,
        path: "/backend/functions/updateProfile".into(),
        application_id: server.client.application_id.clone(),
        requests: sessions.into_iter().enumerate().map(|(n, s)| (s, body(n))).collect(),
    };
    let (mut ours, mut one, mut three, mut raw) = (vec![], vec![], vec![], vec![]);
    for round in 0..pace.rounds {
        machine::wait_until_quiet();
        let at = |what: &str| home.path().join(format!("{what}-{round}"));
        raw.push(alone(&at("alone"), Duration::from_secs(pace.seconds))?);
        one.push(served(home.path(), &at("one"), Rows::One, &load, pace)?);
        three.push(served(home.path(), &at("three"), Rows::Three, &load, pace)?);
        ours.push(load.run(home.path(), pace.seconds)?);
    }
    raw.sort_by(f64::total_cmp);
    let raw = *raw.get(raw.len() / 2).or_say("a measurement")?;
    let (ours, one, three) = (wrk::median(ours)?, wrk::median(one)?, wrk::median(three)?);
    let raw = (raw, format!("{raw:.0}/s, sled with group commit"));
    let row = |what: &str, answers: Answers, yardstick| {
        Row::new(what, (answers.rate, answers.to_string()), yardstick)
    };
    let what = "durable `updateProfile` calls";
    Ok(vec![
        row(what, ours, raw.clone()).at_least(AIM_OF_DISK, BINDS),
        row("a bare server over group commit, one row", one, raw),
        row(what, ours, (one.rate, format!("{one}, bare server over group commit, one row")))
            .at_least(AIM_OF_ONE_ROW, BINDS),
        row(what, ours, (three.rate, format!("{three}, the same with three rows")))
            .at_least(AIM, BINDS),
    ])
}

/// The acknowledged writes per second of group commit alone.
fn alone(at: &Path, time: Duration) -> Outcome<f64> {
    let commit = GroupCommit::start(at, Rows::One)?;
    let begun = Instant::now();
    let writer = async |_| {
        let mut count = 0_u64;
        while begun.elapsed() < time {
            commit.write().await?;
            count += 1;
        }
        Outcome::Ok(count)
    };
    let writers = futures_util::future::try_join_all((0..CONNECTIONS).map(writer));
    let counts = actix_rt::System::new().block_on(writers)?;
    Ok(counts.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
}

/// Sends the same load to a bare server that makes each request durable.
fn served(home: &Path, at: &Path, rows: Rows, load: &Load, pace: Pace) -> Outcome<Answers> {
    let echo = echo::start_durable(pace.http_workers(), at, rows)?;
    Load { address: echo.address, ..load.clone() }.run(home, pace.seconds)
}
