//! Deliveries that are due, to receivers that never answer.

use super::{
    Tenants, app_of,
    lists::{delivery, webhook},
    organization_of, start,
    visitor::Beside,
};
use crate::{
    Pace, builds, machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::{delivery::builds::State, events::deliveries::Deliveries},
    ports::random::Random,
    runtime::resource::Kept,
};
use contract::{AppId, Timestamp, webhooks::DeliveryState};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    path::Path,
    thread,
    time::{Duration, Instant},
};

const DUE: usize = 100_000;
/// Organizations of the attacker, and webhooks of each.
const ORGANIZATIONS: usize = 4;
const WEBHOOKS: usize = 16;
/// Builds of the visitor whose time is over one after another, and the pause between two of them.
const BUILDS: usize = 6;
const APART: Duration = Duration::from_secs(3);
/// The sweeper looks every 20 s.
const LATEST: f64 = 25.0;
/// The bytes that an owner may take.
const OWNER: u64 = 2_300;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let host = tar_pit()?;
    let start = || start(home.path(), pace, &[("SVC_WEBHOOK_PRIVATE_HOSTS", &host)]);
    let server = start()?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let app = app_of(&server, &visitor.session)?;
    let mut hooks = Vec::new();
    for _ in 0..ORGANIZATIONS {
        let organization = organization_of(&server, &attacker)?;
        for number in 0..WEBHOOKS {
            let url = format!("http://{host}/{number}");
            hooks.push((webhook(&server, &attacker, organization, &url)?, organization));
        }
    }
    server.stop()?;

    seed_builds(home.path(), app)?;
    let server = start()?;
    let resting = machine::resident(Some(server.process()))?;
    let before = visitor.in_peace(&server, pace)?;
    let usual = latest(&server, &visitor.session, app)?;
    server.stop()?;

    let random = Random::default();
    seed::fill(home.path(), DUE, |change, number| {
        let (hook, organization) = hooks.get(number % hooks.len()).copied().or_say("a webhook")?;
        let delivery = delivery(&random, hook, organization, DeliveryState::Pending);
        Ok(change.create::<Deliveries>(&delivery.delivery.id.clone(), Kept::at_rest(delivery)))
    })?;
    seed_builds(home.path(), app)?;
    let server = start()?;
    // The first windows are the busiest ones: all deliveries are told that they are due.
    let during = visitor.look(&server, pace.seconds)?;
    let late = latest(&server, &visitor.session, app)?;
    let grown = machine::peak(server.process())?.saturating_sub(resting);
    let attack = format!("{DUE} due deliveries and {} tar pits", ORGANIZATIONS * WEBHOOKS);
    let mut rows = Vec::from(Beside::new(before, during).rows(&attack));
    let seconds = |late: f64, who: &str| (late, format!("{late:.1} s{who}"));
    let row = Row::new(
        &format!("latest end of a build's time beside {attack}"),
        seconds(late, ""),
        seconds(usual, ", before"),
    );
    rows.push(row.aim("under 25 s".into(), late < LATEST, "the pause between two sweeps."));
    rows.push(memory(&attack, grown));
    Ok(rows)
}

/// The row of the memory. Each delivery that is due wakes its owner.
fn memory(attack: &str, grown: u64) -> Row {
    let mib = |bytes: u64, who: &str| (bytes as f64, format!("{} MiB{who}", bytes >> 20));
    let owners = mib(OWNER * DUE as u64, ", an owner in memory for each");
    Row::new(&format!("memory of {attack}"), mib(grown, ""), owners)
}

/// A receiver that takes connections and answers nothing. Returns its host.
fn tar_pit() -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0").or_say("a port")?;
    let host = listener.local_addr().or_say("a port")?.to_string();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            open.push(stream);
        }
    });
    Ok(host)
}

/// Writes builds of the visitor that wait for a runner in vain, and whose time is over soon.
fn seed_builds(home: &Path, app: AppId) -> Outcome<()> {
    let begun = builds::now();
    builds::seed_builds(home, BUILDS, |id, number| {
        let queued_until = begun + APART * (number as u32 + 1);
        let plan = Some(builds::plan()?);
        Ok(Kept::at_rest(State { queued_until, plan, ..builds::state(id, app)? }))
    })
    .map(drop)
}

/// By how many seconds the latest build ended after its time.
fn latest(server: &Server, session: &str, app: AppId) -> Outcome<f64> {
    let begun = Instant::now();
    let params = json!({"appId": app, "limit": BUILDS});
    loop {
        let page = server.client.call(Some(session), "svc_getBuilds", &params)?;
        let builds = page.body.pointer("/result/items").and_then(Value::as_array).cloned();
        let mut builds = builds.or_say("the builds")?;
        builds.reverse();
        let is_over = |build: &Value| build.get("state").is_some_and(|state| state == "timedOut");
        if builds.iter().all(is_over) {
            let late = builds.iter().zip(1..).map(|(build, number)| late(build, number));
            return late
                .collect::<Outcome<Vec<_>>>()
                .map(|all| all.into_iter().fold(0.0, f64::max));
        }
        if begun.elapsed() > Duration::from_secs(300) {
            return Err("the time of builds does not come to an end".into());
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// By how many seconds a build ended late. The builds were written at one time.
fn late(build: &Value, number: u32) -> Outcome<f64> {
    let at = |name: &str| -> Outcome<Timestamp> {
        let text = build.get(name).and_then(Value::as_str).or_say(name)?;
        text.parse().or_say(name)
    };
    let due = at("createdAt")? + APART * number;
    Ok(at("finishedAt")?.since(due).as_secs_f64())
}
