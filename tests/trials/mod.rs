//! A service of three nodes while all goes wrong: nodes are killed and frozen, the network is cut, slow and loses
//! packets, databases fail over and their disk is full, clocks differ. Whatever clients saw must be what one correct
//! process could have shown them. [`instances`] has containers, at two engines.
//!
//! `SVC_TRIAL_SECONDS` sets how long it takes; `SVC_TRIAL_SEED` repeats the faults of a run. `make soak-cluster` takes
//! an hour.

mod clients;
mod faults;
mod history;
mod instances;

use crate::support::{
    load::Over,
    requires,
    service::{LONGEST, Service, eventually},
    webhooks::Receiver,
};
use clients::{Trial, claim_name};
use faults::{NODES, World};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// How long a trial takes by default, in seconds.
const SECONDS: u64 = 40;
const CLIENTS: u64 = 8;

#[test]
fn three_nodes_are_like_one_whatever_goes_wrong() {
    let test = "three_nodes_are_like_one_whatever_goes_wrong";
    if !requires::programs(test, &["haproxy"]) || !requires::node_packages(test, "webhooks") {
        return;
    }
    let (time, mut random) = (time(SECONDS), random());

    let mut receiver = None;
    let world = World::new(test, |network| {
        let here = receiver.insert(Receiver::start_at(&network.machine().address));
        vec![("SVC_WEBHOOK_PRIVATE_HOSTS", here.host.clone()), ("SVC_LOG", "warn".into())]
    });
    let Some(mut world) = world else { return };
    let receiver = receiver.unwrap();
    let ada = world.service.register("ada");
    let call = |name, params| world.service.call(Some(&ada), name, params).ok();
    let organization = call("createOrganization", json!({"name": "Acme"}))["id"].clone();
    let url = receiver.url("/told");
    call("svc_createWebhook", json!({"organizationId": organization, "url": url}));
    let trial = Trial::new(&world.service, NODES.len(), ada.clone(), &organization);

    std::thread::scope(|scope| {
        let seeds: Vec<_> = (0..CLIENTS).map(|_| random.u64(..)).collect();
        let work = |seed| {
            scope.spawn({
                let trial = &trial;
                move || trial.work(seed)
            })
        };
        let clients: Vec<_> = seeds.into_iter().map(work).collect();
        let _over = Over(&trial.is_over);
        let begun = Instant::now();
        // On a slow machine it takes longer until there is something to judge. A client that has ended has found
        // something.
        while (begun.elapsed() < time || !trial.seen.lock().unwrap().is_enough())
            && !clients.iter().any(|client| client.is_finished())
        {
            assert!(begun.elapsed() < time + LONGEST, "there is nothing to judge");
            world.round(&mut random);
        }
    });
    trial.read_everywhere();
    report(&trial, &world);
    registers_are_registers(&trial);
    what_has_one_key_is_made_once(&trial, &world.service);
    releases_are_published_and_told(&trial, &world.service, &receiver);
}

/// How long a trial takes, by default so many seconds.
fn time(seconds: u64) -> Duration {
    Duration::from_secs(number("SVC_TRIAL_SECONDS").unwrap_or(seconds))
}

/// What decides what goes wrong.
fn random() -> fastrand::Rng {
    let seed = number("SVC_TRIAL_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("SVC_TRIAL_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn report(trial: &Trial, world: &World) {
    let seen = trial.seen.lock().unwrap();
    let operations: usize = seen.histories.iter().map(Vec::len).sum();
    println!(
        "calls: {} done, {} not done, {} of unknown outcome\n{operations} operations on registers, {} claims, \
         {} sessions, {} releases\nlongest: {:.1} s without a change, {:.1} s for a publication, {:.1} s until all \
         nodes were ready\nfaults: {:?}",
        seen.done,
        seen.not_done,
        seen.unknown,
        seen.claims.len(),
        seen.sessions,
        seen.published.len(),
        seen.longest_silence.as_secs_f64(),
        seen.longest_publication.as_secs_f64(),
        world.longest_recovery.as_secs_f64(),
        world.faults,
    );
}

/// No change that was acknowledged is missing, and no answer is older than an earlier one, whichever node gave it.
fn registers_are_registers(trial: &Trial) {
    for (number, history) in trial.seen.lock().unwrap().histories.iter().enumerate() {
        let found = history::check(history);
        found.unwrap_or_else(|e| panic!("register {number}, {} operations: {e}", history.len()));
    }
}

/// Callers that use the same key are told of the same app, and there is one.
fn what_has_one_key_is_made_once(trial: &Trial, service: &Service) {
    let apps = trial.apps(service, "Claim ");
    for (claim, told) in &trial.seen.lock().unwrap().claims {
        let there = apps.get(&claim_name(*claim)).map_or(&[][..], Vec::as_slice);
        assert!(there.len() <= 1, "claim {claim} was made {} times: {there:?}", there.len());
        assert!(told.iter().all(|id| there.contains(id)), "claim {claim}: {told:?}, and {there:?}");
    }
}

/// What was published is published, with its file, and the receiver was told with one event.
fn releases_are_published_and_told(trial: &Trial, service: &Service, receiver: &Receiver) {
    let seen = trial.seen.lock().unwrap();
    let call = |name, params| service.call(Some(trial.person()), name, params).ok();
    for (release, artifact) in &seen.published {
        let state = || call("svc_getRelease", json!({"releaseId": release}))["state"].clone();
        eventually("a publication comes to its end", || state() != "publishing");
        assert_eq!(state(), "published", "{release}");
        let found = call("svc_getArtifact", json!({"artifactId": artifact}));
        assert_eq!(found["state"], "verified", "{found}");
    }
    let events = || {
        let mut events: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let requests = receiver.received("/told");
        for request in requests.iter().filter(|r| r.event["type"] == "release.published") {
            let release = request.event["data"]["release"]["id"].as_str().unwrap().to_owned();
            events.entry(release).or_default().insert(request.id.clone());
        }
        (events, requests.len())
    };
    eventually("all publications are told", || {
        let (events, _) = events();
        seen.published.keys().all(|release| events.contains_key(release))
    });
    let (events, requests) = events();
    let different: usize = events.values().map(BTreeSet::len).sum();
    println!("{different} events of {} releases; {requests} requests in all", events.len());
    assert!(events.values().all(|ids| ids.len() == 1), "a publication is one event: {events:?}");
}
