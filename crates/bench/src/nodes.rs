//! Three nodes of a service against one, the time until others act for a node that was killed, and moving a store
//! into a database and back.

use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use test_support::postgres;

pub const METHOD: &str = "Three nodes on one PostgreSQL of the same machine and disk, each with a third of the load of \
    `postgres` (192 connections), against one of them that gets all of it, in turns. All share the processors of the \
    machine, so what three nodes gain by their own is not seen, only what it costs that they are three. Then one of \
    them is killed: timed is until another one says that all shards have a node again; the yardstick is how long a \
    lease holds. Then a store with a million projects, each with its index entries, is moved with `svc admin backup` \
    and `svc admin restore` from a folder into an empty database, and back into an empty folder. The yardstick is that \
    database, which makes a table of as many rows of 300 bytes with a primary key.";

const USERS: usize = 120;
const NODES: usize = 3;
const SHARDS: u64 = 256;
const RESOURCES: usize = 1_000_000;
/// How long a node may be silent before others act for it.
const LEASE: Duration = Duration::from_secs(6);
const TAKEOVER_WITHIN: Duration = Duration::from_secs(10);
const MOVE_WITHIN: Duration = Duration::from_secs(60);
const AIM_OF_NODES: f64 = 0.8;
const BINDS: &str = "processor time: each node applies the changes of all others to its own copy.";

/// Measures nodes, a takeover and moves of a store.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let mut rows = of_nodes(pace)?;
    rows.extend(of_moves()?);
    Ok(rows)
}

/// A node, with its folder.
struct Node {
    server: Server,
    home: TempDir,
}

fn of_nodes(pace: Pace) -> Outcome<Vec<Row>> {
    let address = postgres::new_store("the benchmark").or_say("PostgreSQL")?;
    let settings = [
        ("SVC_DOCKER_HOST", "unix:///nonexistent"),
        ("SVC_STORE", &address),
        ("SVC_NODES", "several"),
        // Nothing is put into it.
        ("SVC_ARTIFACT_STORE", "s3://artifacts"),
        ("AWS_ENDPOINT", "http://127.0.0.1:9"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "bench"),
        ("AWS_SECRET_ACCESS_KEY", "bench"),
    ];
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..NODES {
        let home = machine::scratch()?;
        if let Some(first) = nodes.first() {
            copy_secrets(first.home.path(), home.path())?;
        }
        let server = Server::start_with(home.path(), pace.http_workers(), &settings)?;
        nodes.push(Node { server, home });
    }
    let first = nodes.first().or_say("a node")?;
    let sessions = first.server.register(USERS)?;
    let mut rows = Vec::new();
    for (function, body) in [("getCurrentUser", "{}"), ("updateProfile", r#"{"name":"A user"}"#)] {
        let loads = |at: [usize; NODES]| -> Outcome<Vec<(Load, PathBuf)>> {
            at.into_iter()
                .enumerate()
                .map(|(n, node)| {
                    let node = nodes.get(node).or_say("a node")?;
                    let client = &node.server.client;
                    let mine = sessions.iter().skip(n).step_by(NODES);
                    let load = Load {
                        address: client.address,
                        path: format!("/backend/functions/{function}"),
                        application_id: first.server.client.application_id.clone(),
                        requests: mine.map(|session| (session.clone(), body.into())).collect(),
                    };
                    Ok((load, nodes.get(n).or_say("a node")?.home.path().to_owned()))
                })
                .collect()
        };
        let (mut ours, mut yardstick) = (Vec::new(), Vec::new());
        for _ in 0..pace.rounds {
            machine::wait_until_quiet();
            yardstick.push(together(&loads([0; NODES])?, pace.seconds)?);
            ours.push(together(&loads([0, 1, 2])?, pace.seconds)?);
        }
        let (ours, yardstick) = (wrk::median(ours)?, wrk::median(yardstick)?);
        rows.push(
            Row::new(
                &format!("`{function}` calls with three nodes"),
                (ours.rate, ours.to_string()),
                (yardstick.rate, format!("{yardstick}, with one node")),
            )
            .at_least(AIM_OF_NODES, BINDS),
        );
    }
    let administrator = first.server.administrator()?;
    let taken = takeover(nodes, &administrator)?;
    let text = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    rows.push(
        Row::new(
            "until others act for a node that was killed",
            (taken.as_secs_f64(), text(taken)),
            (LEASE.as_secs_f64(), format!("{}, a lease", text(LEASE))),
        )
        .aim("under 10 s".into(), taken < TAKEOVER_WITHIN, "the length of a lease."),
    );
    Ok(rows)
}

/// Sends all loads at once. The rate is that of all, and the times are those of the slowest.
fn together(loads: &[(Load, PathBuf)], seconds: u64) -> Outcome<Answers> {
    let answers = thread::scope(|scope| {
        let run = |(load, scratch): &(Load, PathBuf)| load.run(scratch, seconds);
        let all: Vec<_> = loads.iter().map(|load| scope.spawn(move || run(load))).collect();
        let ended = all.into_iter().map(|thread| thread.join().ok().or_say("wrk")?);
        ended.collect::<Outcome<Vec<Answers>>>()
    })?;
    let most = |of: fn(&Answers) -> f64| answers.iter().map(of).fold(0.0, f64::max);
    Ok(Answers {
        rate: answers.iter().map(|one| one.rate).sum(),
        median_ms: most(|one| one.median_ms),
        p99_ms: most(|one| one.p99_ms),
    })
}

/// Kills the last node. Returns how long the shards that it had were nobody's.
fn takeover(mut nodes: Vec<Node>, administrator: &str) -> Outcome<Duration> {
    let shards = |node: &Node| -> Outcome<(usize, u64)> {
        let client = &node.server.client;
        let found = client.call(Some(administrator), "svc_admin_getOverview", &json!({}))?;
        let found = found.body.pointer("/result/nodes").and_then(Value::as_array).cloned();
        let found = found.or_say("the nodes")?;
        let shards = found.iter().filter_map(|node| node.get("shards")?.as_u64());
        Ok((found.len(), shards.sum()))
    };
    let last = nodes.pop().or_say("a node")?;
    let first = nodes.first().or_say("a node")?;
    let killed = Instant::now();
    drop(last);
    while shards(first)? != (NODES - 1, SHARDS) {
        if killed.elapsed() > TAKEOVER_WITHIN * 3 {
            return Err("nobody acts for the node that was killed".into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(killed.elapsed())
}

fn copy_secrets(from: &Path, to: &Path) -> Outcome<()> {
    let to = to.join("data/run");
    std::fs::create_dir_all(&to).or_say(to.display())?;
    succeeds(Command::new("cp").arg("-r").arg(from.join("data/run/secrets")).arg(to))
}

fn of_moves() -> Outcome<Vec<Row>> {
    let server = postgres::shared("the benchmark").or_say("PostgreSQL")?;
    let address = postgres::new_store("the benchmark").or_say("PostgreSQL")?;
    let (folder, other) = (machine::scratch()?, machine::scratch()?);
    let store = seed::open(folder.path())?;
    actix_rt::System::new().block_on(seed::projects(&store, RESOURCES))?;
    store.close();
    drop(store);
    copy_secrets(folder.path(), other.path())?;
    let file = folder.path().join("store.svc.gz");
    let moved = |(from, source): (&Path, Option<&str>), (to, target): (&Path, Option<&str>)| {
        machine::wait_until_quiet();
        let begun = Instant::now();
        admin(from, source, "backup", &file)?;
        let half = begun.elapsed();
        admin(to, target, "restore", &file)?;
        std::fs::remove_file(&file).or_say(file.display())?;
        Ok::<_, String>((begun.elapsed(), half))
    };
    let into = moved((folder.path(), None), (folder.path(), Some(&address)))?;
    let back = moved((folder.path(), Some(&address)), (other.path(), None))?;
    machine::wait_until_quiet();
    let begun = Instant::now();
    server.sql(&format!(
        "create table yardstick as select n, repeat('x', 300) from generate_series(1, {RESOURCES}) n;
         alter table yardstick add primary key (n)"
    ));
    let bare = begun.elapsed();
    server.sql("drop table yardstick");
    let text = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let row = |what: &str, (whole, half): (Duration, Duration)| {
        let ours = format!("{} ({} of them reading)", text(whole), text(half));
        let yardstick = (bare.as_secs_f64(), format!("{}, the database by itself", text(bare)));
        Row::new(what, (whole.as_secs_f64(), ours), yardstick).aim(
            "under 60 s".into(),
            whole < MOVE_WITHIN,
            "each row is read, checked and written one by one.",
        )
    };
    Ok(vec![
        row("moving a store with 1,000,000 resources into a database", into),
        row("moving it back into a folder", back),
    ])
}

/// Runs `svc admin` on the store of a folder, or of a database.
fn admin(home: &Path, store: Option<&str>, what: &str, file: &Path) -> Outcome<()> {
    let program = machine::this_program()?.with_file_name("svc");
    let mut command = Command::new(program);
    command.args(["admin", what]).arg(file).current_dir(home);
    command.envs(store.map(|address| ("SVC_STORE", address)));
    succeeds(&mut command)
}

fn succeeds(command: &mut Command) -> Outcome<()> {
    let done = command.output().or_say("a program")?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}
