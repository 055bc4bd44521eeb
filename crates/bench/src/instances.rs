//! Observing a thousand instances at rest, and reading one of them meanwhile.

use crate::{
    Pace,
    client::Client,
    echo,
    engine::ListingEngine,
    fleet::{self, Fleet, Servers},
    helper::Helper,
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use serde_json::json;
use std::{path::Path, time::Duration};

pub const METHOD: &str = "The service has a thousand instances at rest, each with a server and a \
    database. An engine that only lists says that their containers run; one web server answers all \
    health checks. The service looks at all of them every second, ten times as often as it would \
    by itself. Processor time is that of the service in so many rounds, without what it takes with \
    no instances; the yardstick is what a client takes for as many requests to the same health \
    check, each on a connection of its own, as the service makes them. Then `wrk` with 64 \
    connections reads one instance after another with `svc_getBackendInstance`: with a round every \
    second, for which the engine and the health checks take their share of the processors too; with \
    hardly any; and from a bare actix-web server, which gets and parses the replies that it answers \
    with, or echoes the request's own few bytes. Samples of what containers use are not taken here.";

const BINDS: &str = "processor time: see `calls`.";
const INSTANCES: usize = 1000;
const HEALTH: &str = "/bytes/20";
/// Measured rounds.
const ROUNDS: u64 = 30;
/// A pause in which the service finishes the work of its start.
const CALM_DOWN: Duration = Duration::from_secs(3);
/// Instances that are read in turn.
const READ: usize = 64;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (home, upstream) = (machine::scratch()?, echo::start(1)?);
    let project = an_owned_project(home.path(), pace)?;
    let nothing = ListingEngine::start(home.path(), &[])?;
    let without = rounds(home.path(), &nothing, pace)?;
    drop(nothing);

    let servers = Servers { port: upstream.address.port(), health: HEALTH };
    let store = seed::open(home.path())?;
    let project_id = project.id.parse().or_say("the project")?;
    let seeding = fleet::seed(&store, project_id, INSTANCES, &servers);
    let fleet = actix_rt::System::new().block_on(seeding)?;
    store.close();
    drop(store);
    let engine = ListingEngine::start(home.path(), &fleet.containers)?;
    let with = rounds(home.path(), &engine, pace)?;
    let bare = requests(&upstream)?;
    let each = (with - without) / INSTANCES as f64;
    let micros = |each: f64, who: &str| (each, format!("{each:.1} µs{who}"));
    let mut rows = vec![
        Row::new(
            "processor time of each look at an idle instance",
            micros(each, ""),
            micros(bare, ", a request to its health check"),
        )
        .at_most(1.0, BINDS),
    ];
    rows.extend(reads(home.path(), &engine, &project, &fleet, pace)?);
    Ok(rows)
}

/// A project, and the session of its owner.
struct OwnedProject {
    id: String,
    session: String,
}

fn an_owned_project(home: &Path, pace: Pace) -> Outcome<OwnedProject> {
    let server = Server::start(home, pace.http_workers())?;
    let session = server.register(1)?.pop().or_say("a session")?;
    let created =
        server.client.call(Some(&session), "svc_createProject", &json!({"name": "Fleet"}))?;
    let id = created.text("/result/id")?.to_owned();
    server.stop()?;
    Ok(OwnedProject { id, session })
}

/// Microseconds of processor time that the service takes for one round.
fn rounds(home: &Path, engine: &ListingEngine, pace: Pace) -> Outcome<f64> {
    let server = start(home, engine, pace, "1")?;
    // The first rounds take longer, because all containers are new to the service.
    wait_for(engine, 3)?;
    let (before, taken) = (engine.rounds()?, machine::processor_time(server.process())?);
    wait_for(engine, before + ROUNDS)?;
    let taken = machine::processor_time(server.process())? - taken;
    let rounds = engine.rounds()? - before;
    server.stop()?;
    Ok(taken * 1e6 / rounds as f64)
}

fn start(home: &Path, engine: &ListingEngine, pace: Pace, every: &str) -> Outcome<Server> {
    let host = engine.host();
    let settings = [("SVC_DOCKER_HOST", host.as_str()), ("SVC_WATCH_INTERVAL", every)];
    Server::start_with(home, pace.http_workers(), &settings)
}

fn wait_for(engine: &ListingEngine, rounds: u64) -> Outcome<()> {
    for _ in 0..600 {
        if engine.rounds()? >= rounds {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("the service does not look at its instances".into())
}

/// Microseconds of processor time of this process for one request to the health check.
fn requests(upstream: &Helper) -> Outcome<f64> {
    let client = Client::to(upstream.address);
    let this = std::process::id();
    let before = machine::processor_time(this)?;
    let count = INSTANCES * 10;
    for _ in 0..count {
        client.get(HEALTH).or_say("the health check")?;
    }
    Ok((machine::processor_time(this)? - before) * 1e6 / count as f64)
}

/// Reads instances while the service observes them, against reading them alone and against a bare
/// server.
fn reads(
    home: &Path,
    engine: &ListingEngine,
    project: &OwnedProject,
    fleet: &Fleet,
    pace: Pace,
) -> Outcome<[Row; 3]> {
    let echo = echo::start(pace.http_workers())?;
    let (mut busy, mut calm, mut bare, mut short) = (vec![], vec![], vec![], vec![]);
    for _ in 0..pace.rounds {
        for (every, answers) in [("1", &mut busy), ("3600", &mut calm)] {
            let begun = engine.rounds()?;
            let server = start(home, engine, pace, every)?;
            wait_for(engine, begun + 1)?;
            let (load, replies) = load(&server, project, fleet)?;
            std::thread::sleep(CALM_DOWN);
            answers.push(load.run(home, pace.seconds)?);
            server.stop()?;
            if every == "1" {
                machine::wait_until_quiet();
                let echoed = Load { address: echo.address, ..load };
                short.push(echoed.run(home, pace.seconds)?);
                bare.push(Load { requests: replies, ..echoed }.run(home, pace.seconds)?);
            }
        }
    }
    let [busy, calm, bare, short] = [busy, calm, bare, short].map(wrk::median);
    let text = |answers: Answers, who: &str| (answers.rate, format!("{answers}{who}"));
    let (busy, what) = (busy?, "`svc_getBackendInstance` calls while a thousand are looked at");
    Ok([
        Row::new(what, text(busy, ""), text(calm?, ", the same in peace")).at_least(0.9, BINDS),
        Row::new(what, text(busy, ""), text(bare?, ", bare actix-web")).at_least(0.7, BINDS),
        Row::new(what, text(busy, ""), text(short?, ", bare actix-web echoing the request"))
            .at_least(0.5, BINDS),
    ])
}

/// Calls that read instances in turn, and their replies.
fn load(
    server: &Server,
    project: &OwnedProject,
    fleet: &Fleet,
) -> Outcome<(Load, Vec<(String, String)>)> {
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for (instance, _) in fleet.instances.iter().take(READ) {
        let params = json!({"instanceId": instance});
        let reply =
            server.client.call(Some(&project.session), "svc_getBackendInstance", &params)?;
        if reply.text("/result/state")? != "running" {
            return Err(format!("an instance does not run: {}", reply.body));
        }
        requests.push((project.session.clone(), params.to_string()));
        replies.push((project.session.clone(), reply.body.to_string()));
    }
    let load = Load {
        address: server.client.address,
        path: "/backend/functions/svc_getBackendInstance".into(),
        application_id: server.client.application_id.clone(),
        requests,
    };
    Ok((load, replies))
}
