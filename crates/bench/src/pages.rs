//! Pages of the dashboard, and connections that wait for live updates.

use crate::{
    Pace,
    builds::{app, rate, seed_builds, state},
    client::Client,
    echo, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use actors::runtime::resource::Kept;
use contract::{AppId, BuildId};
use serde_json::json;
use std::{
    net::{Ipv4Addr, TcpStream},
    sync::Mutex,
    time::{Duration, Instant},
};

pub const METHOD: &str = "Sixteen browsers ask for a page without scripts, each over a new \
    connection: the start page of somebody with fifty projects, and the reference of all functions. \
    The yardstick is a bare web server that answers as many bytes. The time of a page is that of one \
    browser alone, at the 95th percentile. 500 live connections, of 20 accounts at as many addresses, \
    follow the state of a build each; their yardstick are as many connections that got a page and stay \
    open.";

const BROWSERS: usize = 16;
const PROJECTS: usize = 50;
/// Live connections in all, and of each account. The service allows some more of both.
const LIVE: usize = 500;
const OF_AN_ACCOUNT: usize = 25;
const SLOWEST: Duration = Duration::from_millis(20);
const HEAVIEST: usize = 100 * 1024;
const RATE: f64 = 0.1;
const LIVE_MEMORY: f64 = 2.0;
const LIVE_WORK: f64 = 20.0;
const BINDS: &str = "processor time: each page calls functions and renders.";

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server = Server::start(home.path(), pace.http_workers())?;
    let sessions = server.register(LIVE / OF_AN_ACCOUNT)?;
    let session = sessions.first().or_say("a session")?.clone();
    for n in 0..PROJECTS {
        let project = json!({"name": format!("Project {n}")});
        server.client.call(Some(&session), "svc_createProject", &project)?;
    }
    let apps: Outcome<Vec<_>> = sessions.iter().map(|session| app(&server, session)).collect();
    let apps = apps?;
    // Signing in takes much memory for a moment, which would hide that of connections.
    server.stop()?;
    let builds = seed_builds(home.path(), apps.len(), |id, number| {
        let app: AppId = apps.get(number as usize).or_say("an app")?.parse().or_say("the app")?;
        Ok(Kept::at_rest(state(id, app)?))
    })?;
    let server = Server::start(home.path(), pace.http_workers())?;
    let watching = builds.into_iter().zip(sessions).enumerate().map(|(n, (build, session))| {
        // One address has a part of the connections only.
        let address = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + n as u32);
        Watcher { address, session, build }
    });
    let watching: Vec<_> = watching.collect();
    // The pages have one worker.
    let echo = echo::start(1)?;
    let bare = Client::to(echo.address);
    let mut rows: Vec<Row> = live(&server, &watching, pace)?.into();
    for (name, path) in [("start page", "/"), ("reference", "/reference")] {
        let page = || server.page(path, &session);
        let weight = page()?;
        let same = format!("/bytes/{weight}");
        let blank = || bare.size(&same, &[]).map(drop);
        let ours = rate(BROWSERS, pace.seconds, |_, _| page().map(drop))?;
        let theirs = rate(BROWSERS, pace.seconds, |_, _| blank())?;
        let text = |rate: f64, who: &str| (rate, format!("{rate:.0}/s{who}"));
        let yardstick = text(theirs, ", a bare web server");
        let row = Row::new(&format!("pages: {name}"), text(ours, ""), yardstick);
        rows.push(row.at_least(RATE, BINDS));
        let (ours, theirs) = (slow(pace, || page().map(drop))?, slow(pace, blank)?);
        let millis =
            |time: Duration| (time.as_secs_f64(), format!("{:.1} ms", time.as_secs_f64() * 1e3));
        let row = Row::new(&format!("time of the {name}, p95"), millis(ours), millis(theirs));
        rows.push(row.aim("under 20 ms".into(), ours < SLOWEST, BINDS));
        let kib = |bytes: usize| (bytes as f64, format!("{:.1} KiB", bytes as f64 / 1024.0));
        let row = Row::new(&format!("weight of the {name}"), kib(weight), kib(HEAVIEST));
        rows.push(row.aim("under 100 KiB".into(), weight < HEAVIEST, "what it lists."));
    }
    Ok(rows)
}

/// Somebody who has a build that waits.
struct Watcher {
    address: Ipv4Addr,
    session: String,
    build: BuildId,
}

/// Connections that wait for live updates: their memory, and the processor time that all of them take.
fn live(server: &Server, watching: &[Watcher], pace: Pace) -> Outcome<[Row; 2]> {
    let opened = |path: &dyn Fn(&Watcher) -> String| -> Outcome<(Vec<TcpStream>, f64, f64)> {
        let before = machine::resident(Some(server.process()))?;
        let each = watching.iter().flat_map(|who| std::iter::repeat_n(who, OF_AN_ACCOUNT));
        let open = each.map(|who| server.follow(who.address, &path(who), &who.session));
        let open: Vec<_> = open.collect::<Outcome<_>>()?;
        let bytes = machine::resident(Some(server.process()))?.saturating_sub(before);
        let (begun, worked) = (Instant::now(), machine::processor_time(server.process())?);
        std::thread::sleep(Duration::from_secs(pace.seconds));
        let worked = machine::processor_time(server.process())? - worked;
        let share = 100.0 * worked / begun.elapsed().as_secs_f64();
        Ok((open, bytes as f64 / LIVE as f64, share))
    };
    // The idle ones stay open, so that the others do not get their memory.
    let (_idle, idle, resting) = opened(&|_| "/account".into())?;
    let (_live, live, following) = opened(&|who| format!("/builds/{}/state", who.build))?;
    let kib = |bytes: f64, who: &str| (bytes.max(1.0), format!("{:.1} KiB{who}", bytes / 1024.0));
    let memory = Row::new("memory of a live connection", kib(live, ""), kib(idle, ", an idle one"))
        .at_most(LIVE_MEMORY, BINDS);
    let percent =
        |share: f64, who: &str| (share.max(0.1), format!("{share:.1} % of a processor{who}"));
    let what = format!("{LIVE} live connections");
    let work = Row::new(&what, percent(following, ""), percent(resting, ", idle ones"));
    Ok([memory, work.at_most(LIVE_WORK, BINDS)])
}

/// The time of one in twenty that is slower than the others.
fn slow(pace: Pace, work: impl Fn() -> Outcome<()> + Sync) -> Outcome<Duration> {
    let times = Mutex::new(Vec::new());
    rate(1, pace.seconds, |_, _| {
        let begun = Instant::now();
        work()?;
        times.lock().map(|mut times| times.push(begun.elapsed())).or_say("the times")
    })?;
    let mut times = times.into_inner().or_say("the times")?;
    times.sort_unstable();
    times.get(times.len() * 95 / 100).copied().or_say("a measurement")
}
