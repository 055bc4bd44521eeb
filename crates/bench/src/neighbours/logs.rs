//! Large logs of builds.

use super::{Tenants, app_of, start};
use crate::{
    Pace, builds, machine,
    outcome::{Explain, Outcome},
    table::Row,
};
use actors::{kinds::builds::State, runtime::resource::Kept};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
    let key = |log: usize| format!("the-key-of-the-runner-{log:02}");
    let logs = (0..LOGS).map(|log| {
        let claimed = call(
            "svc_claimBuild",
            json!({"runner": key(log), "name": "runner", "labels": ["android"], "appIds": [app]}),
        )?;
        Ok(claimed.text("/result/job/buildId")?.to_owned())
    });
    let logs = logs.collect::<Outcome<Vec<_>>>()?;
    let lines = vec!["x".repeat(LINE); LINES];
    // Each thread takes the next log, until there are none.
    let each = |work: &(dyn Fn(usize, &str) -> Outcome<()> + Sync)| {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let runner = || {
                while let Some((log, build)) = take(&next, &logs) {
                    work(log, build)?;
                }
                Outcome::Ok(())
            };
            let runners: Vec<_> = (0..RUNNERS).map(|_| scope.spawn(runner)).collect();
            runners.into_iter().try_for_each(|runner| match runner.join() {
                Ok(done) => done,
                Err(_) => Err("a thread panicked".into()),
            })
        })
    };
    let written = visitor.beside(&server, pace, |signal| {
        signal.begin();
        each(&|log, build| {
            (0..REPORTS).try_for_each(|report| {
                let from = report * LINES;
                let params =
                    json!({"buildId": build, "runner": key(log), "from": from, "lines": lines});
                call("svc_reportBuild", params).map(drop)
            })
        })
    })?;
    let read = visitor.beside(&server, pace, |signal| {
        signal.begin();
        each(&|_, build| {
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

fn take<'a>(next: &AtomicUsize, logs: &'a [String]) -> Option<(usize, &'a str)> {
    let log = next.fetch_add(1, Relaxed);
    logs.get(log).map(|build| (log, build.as_str()))
}
