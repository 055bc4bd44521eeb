//! Large logs of builds.

use super::{Tenants, app_of, start};
use crate::{
    Pace, builds, machine,
    outcome::{Explain, Outcome},
    table::Row,
};
use actors::{kinds::delivery::builds::State, runtime::resource::Kept};
use serde_json::{Value, json};
use std::sync::Mutex;

/// Logs, of 16 MiB each.
const LOGS: usize = 45;
/// Runners at a time.
const RUNNERS: usize = 4;
/// Reports of each log, and the lines of each report.
const REPORTS: usize = 20;
const LINES: usize = 1_000;
/// With the line break and what JSON adds, a report has just less than the 1 MiB that a body may have.
const LINE: usize = 1_000;
const MOST_MEMORY: u64 = 200_000_000;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server = start(home.path(), pace, &[])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let app = app_of(&server, &attacker)?;
    server.stop()?;
    builds::seed_builds(home.path(), LOGS, |id, _| {
        let plan = Some(builds::plan()?);
        Ok(Kept::at_rest(State { plan, ..builds::state(id, app)? }))
    })?;
    let server = start(home.path(), pace, &[])?;
    let call = |function, params| server.client.call(Some(&attacker), function, &params);
    let lines = vec!["x".repeat(LINE); LINES];
    let made = Mutex::new(Vec::new());
    let written = visitor.beside(&server, pace, |signal| {
        signal.begin();
        each(0..LOGS, |log| {
            let runner = format!("the-key-of-the-runner-{log:02}");
            let claimed = call(
                "svc_claimBuild",
                json!({"runner": runner, "name": "runner", "labels": ["android"], "appIds": [app]}),
            )?;
            let build = claimed.text("/result/job/buildId")?.to_owned();
            for report in 0..REPORTS {
                let from = report * LINES;
                let report =
                    json!({"buildId": build, "runner": runner, "from": from, "lines": lines});
                call("svc_reportBuild", report)?;
            }
            let ended = json!({"buildId": build, "runner": runner, "error": "make failed"});
            call("svc_finishBuild", ended)?;
            made.lock().map(|mut made| made.push(build)).or_say("the builds")
        })
    })?;
    let made = made.into_inner().or_say("the builds")?;
    let read = visitor.beside(&server, pace, |signal| {
        signal.begin();
        each(made, |build| {
            let mut cursor = Value::Null;
            loop {
                let params = json!({"buildId": build, "cursor": cursor});
                let page = call("svc_getBuildLogs", params)?;
                let lines = page.body.pointer("/result/lines").and_then(Value::as_array);
                if lines.or_say("the lines")?.is_empty() {
                    return Ok(());
                }
                cursor = page.text("/result/nextCursor")?.into();
            }
        })
    })?;
    let mut rows = Vec::new();
    for (what, beside) in [("written", written), ("read", read)] {
        let attack = format!("{} MB of logs that are {what}", LOGS << 4);
        rows.extend(beside.rows(&attack));
        rows.push(beside.memory(&attack, MOST_MEMORY));
    }
    Ok(rows)
}

/// Does the work for each of these, several at a time.
fn each<T: Send>(
    all: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> Outcome<()> + Sync,
) -> Outcome<()> {
    let left = Mutex::new(all.into_iter());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let runner = || std::iter::from_fn(next).try_for_each(&work);
    std::thread::scope(|scope| {
        let runners: Vec<_> = (0..RUNNERS).map(|_| scope.spawn(runner)).collect();
        runners.into_iter().try_for_each(|runner| match runner.join() {
            Ok(done) => done,
            Err(_) => Err("a thread panicked".into()),
        })
    })
}
