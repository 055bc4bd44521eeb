//! Reconciles instances at rest, at each engine for itself. Each round compares one inventory of the engine with
//! the records of its instances, checks the health of the running services, and tells instances of security advisories. The reconciler
//! also measures what instances hold on the disk, and listens to the engine's events. It tells an instance
//! that drifted from its record to reconcile. It writes no instance's record itself, and later rounds can
//! find all of its state again.

mod advise;
mod disk;
mod drift;
mod orphans;
mod walls;

use super::image_gc::prune;
use crate::{
    kinds::{
        hosting::{
            engines::{Engines, Host},
            instances::{
                Command, InstanceIndex, Instances,
                metrics::{self, LastReadings},
            },
            names,
        },
        world::World,
    },
    runtime::{clock_watch, entries::Under, guard::Guard},
};
use actix::prelude::*;
use container_engine::Container;
use contract::{
    Fault, InstanceId, Timestamp,
    instances::{InstanceState, Role},
};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, join4, select},
    stream::FuturesUnordered,
};
use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};
use store::{Change, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// The pause after each round.
    pub round: Duration,
    /// How often the resource usage is sampled.
    pub sample: Duration,
    /// How often unused images and old archives of folders are removed.
    pub prune: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals {
            round: Duration::from_secs(10),
            sample: Duration::from_secs(60),
            prune: Duration::from_secs(600),
        }
    }
}

/// The pause before a lost event stream is opened again.
const RECONNECT: Duration = Duration::from_secs(1);

/// The pause before it is looked again which engines there are.
const LOOK_FOR_ENGINES: Duration = Duration::from_secs(1);

/// The pause before it is looked again whether there is an instance. The first one waits for it.
const UNTIL_THE_FIRST: Duration = Duration::from_secs(1);

type Recorded = (InstanceId, Snapshot<Instances>);

pub struct InstanceReconciler {
    world: Arc<World>,
    intervals: Intervals,
}

impl InstanceReconciler {
    /// Starts on this thread's arbiter.
    pub fn start(world: Arc<World>, intervals: Intervals) -> Addr<InstanceReconciler> {
        let clock = world.ports.clock.clone();
        let health = world.registry.add("instance_reconciler", None, 1, clock.now());
        let reconciler = InstanceReconciler { world, intervals };
        Guard::start(reconciler, Default::default(), health, clock)
    }
}

impl Actor for InstanceReconciler {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.spawn(at_all_engines(self.world.clone(), self.intervals).into_actor(self));
        ctx.spawn(prune_unused(self.world.clone(), self.intervals.prune).into_actor(self));
    }
}

impl Supervised for InstanceReconciler {}

/// Works at all engines, also at those that are added later, and no more at those that are removed.
async fn at_all_engines(world: Arc<World>, intervals: Intervals) {
    let mut known: Vec<(Arc<Host>, AbortHandle)> = Vec::new();
    let mut work = FuturesUnordered::new();
    loop {
        let hosts = world.all_hosts().unwrap_or_else(|e| {
            tracing::error!(error = %e, "the added engines cannot be read");
            vec![world.hosts.own().clone()]
        });
        for (_, end) in known.extract_if(.., |(known, _)| !contains(&hosts, known)) {
            end.abort();
        }
        for host in hosts {
            if known.iter().all(|(known, _)| !Arc::ptr_eq(known, &host)) {
                let (end, ended) = AbortHandle::new_pair();
                work.push(Abortable::new(at_engine(world.clone(), host.clone(), intervals), ended));
                known.push((host, end));
            }
        }
        // Only work that was aborted ends.
        select(pin!(world.ports.clock.sleep(LOOK_FOR_ENGINES)), work.next()).await;
    }
}

fn contains(hosts: &[Arc<Host>], wanted: &Arc<Host>) -> bool {
    hosts.iter().any(|host| Arc::ptr_eq(host, wanted))
}

/// Works at one engine, and never ends.
async fn at_engine(world: Arc<World>, host: Arc<Host>, intervals: Intervals) {
    let (world, host) = (&world, &*host);
    let listens = listen(world, host);
    let walls = walls::keep(world, host, intervals.round);
    let measures = disk::keep_measuring(world, host, intervals.round);
    join4(rounds(world, host, intervals), listens, walls, measures).await;
}

async fn rounds(world: &Arc<World>, host: &Host, intervals: Intervals) {
    let mut failures = drift::Failures::new();
    let (mut sampled_at, last) = (None, LastReadings::default());
    loop {
        let now = world.ports.clock.now();
        let sample = sampled_at.is_none_or(|at: Timestamp| now.since(at) >= intervals.sample);
        if sample {
            sampled_at = Some(now);
        }
        failures = round(world, host, failures, sample.then_some(&last)).await;
        let soon = pin!(host.health.should_be_observed());
        select(world.ports.clock.sleep(intervals.round), soon).await;
    }
}

/// Runs one round, and samples with the readings of the last samples if there are any. Returns the
/// failed health checks in a row.
async fn round(
    world: &Arc<World>,
    host: &Host,
    failures: drift::Failures,
    sample: Option<&LastReadings>,
) -> drift::Failures {
    let labels = names::of_installation(&world.ports.site.installation);
    let (now, returns) = (world.ports.clock.now(), host.health.status().returns);
    let inventory = match host.engine.inventory(&labels).await {
        Ok(inventory) => inventory,
        Err(e) => {
            host.health.set_unreachable(&e, now);
            return failures;
        }
    };
    host.health.set_reachable();
    if sample.is_some() {
        match host.engine.about().await {
            Ok(about) => host.health.set_about(about),
            Err(e) => {
                tracing::warn!(error = %e, "the engine does not say what its machine has, so it is not known what may be promised of it");
            }
        }
    }
    // A record that another node wrote before must not be older here than what the engine says.
    if let Err(e) = world.store.catch_up().await {
        tracing::warn!(error = %e, "what other nodes have written cannot be read");
        return failures;
    }
    let instances = match instances(world, host) {
        Ok(instances) => instances,
        Err(e) => {
            tracing::error!(error = %e, "the instances cannot be read");
            return failures;
        }
    };
    let containers: HashMap<&str, &Container> =
        inventory.containers.iter().map(|c| (c.name.as_str(), c)).collect();
    let at_rest = instances.iter().filter(|(_, seen)| seen.pending().is_none());
    let mut drifted: HashMap<InstanceId, Vec<Role>> = at_rest
        .filter_map(|(id, seen)| Some((*id, drift::drift(*id, &seen.state, &containers)?)))
        .collect();
    if !host.health.has_observed_all() {
        let busy = instances.iter().filter(|(_, seen)| seen.pending().is_some());
        drifted.extend(busy.filter_map(|(id, seen)| {
            let lost = drift::lost(*id, &seen.state, &containers);
            (!lost.is_empty()).then_some((*id, lost))
        }));
    }
    if !acts(world) {
        if drifted.values().all(Vec::is_empty) {
            host.health.set_observed_all(returns);
        }
        return failures;
    }
    let mut all_know = true;
    for (id, lost) in &drifted {
        all_know &= notify(world, *id, lost.clone()).await;
    }
    if all_know {
        host.health.set_observed_all(returns);
    }
    let (failures, mut changed) = drift::check_health((world, host), &instances, failures).await;
    changed.retain(|id| !drifted.contains_key(id));
    for id in &changed {
        notify(world, *id, Vec::new()).await;
    }
    host.health.count_drift((drifted.len() + changed.len()) as u64);
    orphans::remove_orphans((world, host), &inventory, &instances, now).await;
    orphans::remove_restore_checks(world, host, &inventory).await;
    advise::tell_news(world, &instances).await;
    if let Some(last) = sample {
        take_samples(world, last, &instances).await;
    }
    failures
}

/// Whether this process tells instances what became of their containers, and removes what none needs.
fn acts(world: &World) -> bool {
    world.store.does("reconciliation of instances")
}

/// The instances that are placed on an engine.
fn instances(world: &World, host: &Host) -> Result<Vec<Recorded>, Fault> {
    match host.id {
        Some(id) => world.store.newest(&Under::<Engines>(id), None).collect(),
        None => {
            let all = world.store.newest(&InstanceIndex::All, None);
            all.filter(|found| found.as_ref().map_or(true, |(_, seen)| seen.engine.is_none()))
                .collect()
        }
    }
}

/// Tells an instance to reconcile. Returns whether it knows which of its services are `lost`.
async fn notify(world: &World, id: InstanceId, lost: Vec<Role>) -> bool {
    let is_lost = !lost.is_empty();
    match world.to::<Instances>(id).ask_if_there(Command::Observe { lost }).await {
        Ok(_) => true,
        Err(fault) => {
            tracing::warn!(%id, error = %fault, "an instance was not told to reconcile");
            !is_lost
        }
    }
}

async fn take_samples(world: &World, last: &LastReadings, instances: &[Recorded]) {
    let now = world.ports.clock.now();
    for readings in [last, &world.last_readings] {
        readings.forget_old(now);
    }
    for (id, seen) in instances {
        let instance = &seen.state;
        if !matches!(instance.state, InstanceState::Running | InstanceState::Degraded) {
            continue;
        }
        // The others are sampled also if this one cannot be.
        if let Ok(Some(sample)) = metrics::sample(world, last, *id, instance).await {
            let key = metrics::HourlyMetrics::key(*id, sample.at);
            world.store.note(Change::new().merge::<metrics::HourlyMetrics>(&key, sample));
        }
    }
}

/// Removes unused images at each interval. A failure is tried again at the next interval.
async fn prune_unused(world: Arc<World>, every: Duration) {
    loop {
        world.ports.clock.sleep(every).await;
        if !acts(&world) {
            continue;
        }
        // What looks old after a jump of the clock may be new.
        if !matches!(clock_watch::peek(&world.store, &world.ports.clock), Ok(None)) {
            continue;
        }
        if let Err(e) = world.ports.folders.forget().await {
            tracing::warn!(error = %e, "old archives of folders were not removed");
        }
        for host in world.all_hosts().unwrap_or_default() {
            if let Err(e) = prune(&world, &host).await {
                tracing::warn!(error = %e, "unused images were not removed");
            }
        }
    }
}

/// Tells instances to reconcile when the engine reports an event of their containers. The next
/// round finds the changes that happen while the stream is lost.
async fn listen(world: &World, host: &Host) {
    let labels = names::of_installation(&world.ports.site.installation);
    loop {
        let since = world.ports.clock.now();
        match host.engine.events(&labels, since).await {
            Ok(mut events) => {
                host.health.set_back();
                while let Some(Ok(event)) = events.next().await {
                    let owner = event.labels.get(names::INSTANCE);
                    let owner = owner.filter(|_| acts(world));
                    if let Some(id) = owner.and_then(|id| id.parse().ok()) {
                        notify(world, id, Vec::new()).await;
                    }
                }
                host.health.set_lost(world.store.is_alone());
            }
            Err(e) => {
                host.health.set_unreachable(&e, world.ports.clock.now());
                host.health.set_lost(world.store.is_alone());
            }
        }
        world.ports.clock.sleep(RECONNECT).await;
    }
}
