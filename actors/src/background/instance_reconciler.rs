//! Watches the engine for all instances at rest: one inventory for all of them, the engine's events,
//! and the health checks of what serves. Whoever is not as its record says is told to look. It
//! writes nothing itself; what it forgets when the process ends, the next round finds again.

use crate::{
    background::image_gc::prune,
    kinds::{
        backups::Backups,
        instances::{Command, Instance, InstanceIndex, Instances, metrics, names},
    },
    runtime::guard::Guard,
    world::World,
};
use actix::prelude::*;
use container_engine::{Container, Health, Inventory, Labels};
use contract::{
    BackupId, Fault, InstanceId, Timestamp,
    instances::{InstanceState, Role, ServiceHealth, ServiceState},
    templates::HealthCheck,
};
use futures_util::{StreamExt, stream};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use store::{Change, Snapshot};

/// How the watch goes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How often it looks at everything.
    pub every: Duration,
    /// How often it samples what instances use.
    pub sample: Duration,
    /// How often it removes what builds left behind.
    pub prune: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            every: Duration::from_secs(10),
            sample: Duration::from_secs(60),
            prune: Duration::from_secs(3600),
        }
    }
}

/// Health checks under way at a time.
const PROBES: usize = 32;
/// How long one may take.
const PROBE_WITHIN: Duration = Duration::from_secs(3);
/// How often in a row a check must fail.
const FAILURES: u32 = 3;
/// How long a container of ours that no record knows is left alone.
const ORPHAN_FOR: Duration = Duration::from_secs(24 * 3600);
/// How soon a lost stream of events is asked for again.
const RECONNECT: Duration = Duration::from_secs(1);

/// The watch.
pub struct Watch {
    world: Arc<World>,
    pace: Pace,
}

impl Watch {
    /// Starts it on this thread's arbiter.
    pub fn start(world: Arc<World>, pace: Pace) -> Addr<Watch> {
        let clock = world.ports.clock.clone();
        let health = world.registry.add("watch", None, 1, clock.now());
        Guard::start(Watch { world, pace }, Default::default(), health, clock)
    }
}

impl Actor for Watch {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.spawn(rounds(self.world.clone(), self.pace).into_actor(self));
        ctx.spawn(listen(self.world.clone()).into_actor(self));
        ctx.spawn(tidy(self.world.clone(), self.pace.prune).into_actor(self));
    }
}

impl Supervised for Watch {}

/// Looks at everything, again and again, with a pause after each round.
async fn rounds(world: Arc<World>, pace: Pace) {
    let mut failures = HashMap::new();
    let mut sampled_at: Option<Timestamp> = None;
    loop {
        let now = world.ports.clock.now();
        let sample = sampled_at.is_none_or(|at| now.since(at) >= pace.sample);
        if sample {
            sampled_at = Some(now);
        }
        failures = round(&world, failures, sample).await;
        world.ports.clock.sleep(pace.every).await;
    }
}

/// Looks at everything once.
async fn round(
    world: &Arc<World>,
    failures: HashMap<(InstanceId, Role), u32>,
    sample: bool,
) -> HashMap<(InstanceId, Role), u32> {
    let labels = names::of_installation(&world.ports.site.installation);
    let now = world.ports.clock.now();
    let inventory = match world.ports.engine.inventory(&labels).await {
        Ok(inventory) => inventory,
        Err(e) => {
            world.engine_health.lost(&e, now);
            return failures;
        }
    };
    world.engine_health.found();
    let instances = match instances(world) {
        Ok(instances) => instances,
        Err(e) => {
            tracing::error!(error = %e, "the instances cannot be read");
            return failures;
        }
    };
    let there: HashMap<&str, &Container> =
        inventory.containers.iter().map(|c| (c.name.as_str(), c)).collect();
    let at_rest = instances.iter().filter(|(_, seen)| seen.intent.is_none());
    let drift = |(id, seen): &(InstanceId, Snapshot<Instances>)| {
        drift(*id, &seen.state, &there).map(|lost| (*id, lost))
    };
    let mut drifted: HashMap<InstanceId, Vec<Role>> = at_rest.filter_map(drift).collect();
    let (failures, changed) = probe(world, &instances, failures).await;
    for id in changed {
        drifted.entry(id).or_default();
    }
    for (id, lost) in &drifted {
        look(world, *id, lost.clone()).await;
    }
    // From now on the records say where the containers are, or nothing.
    world.engine_health.joined();
    world.engine_health.drifted(drifted.len() as u64);
    remove_orphans(world, &inventory, &instances, now).await;
    remove_trials(world, &inventory).await;
    if sample {
        take_samples(world, &instances).await;
    }
    failures
}

fn instances(world: &World) -> Result<Vec<(InstanceId, Snapshot<Instances>)>, Fault> {
    let mut found = Vec::new();
    for id in world.store.all(&InstanceIndex::All)? {
        found.extend(world.store.get::<Instances>(&id)?.map(|seen| (id, seen)));
    }
    Ok(found)
}

/// Whether an instance at rest is not as its record says: the services whose containers are not
/// where it says they are.
fn drift(
    id: InstanceId,
    instance: &Instance,
    there: &HashMap<&str, &Container>,
) -> Option<Vec<Role>> {
    let (mut lost, mut drifted) = (Vec::new(), false);
    for part in &instance.parts {
        let (live, role) = (&part.live, part.role());
        let found = there.get(names::container(id, role, live.generation).as_str()).copied();
        let running = found.filter(|container| container.is_running());
        let moved = live.port.is_some() && running.is_none_or(|c| c.port != live.port);
        lost.extend(moved.then_some(role));
        let health = running.and_then(|container| by_command(container.health));
        drifted |= match instance.state {
            InstanceState::Running | InstanceState::Degraded => {
                let should = !part.left_out;
                should && (running.is_none() || health.is_some_and(|h| h != live.health))
            }
            InstanceState::Stopped => running.is_some(),
            InstanceState::Failed => running.is_some() != (live.state == ServiceState::Running),
            _ => false,
        };
        drifted |= running.is_some_and(|c| c.port != live.port);
    }
    (drifted || !lost.is_empty()).then_some(lost)
}

fn by_command(health: Option<Health>) -> Option<ServiceHealth> {
    match health? {
        Health::Healthy => Some(ServiceHealth::Healthy),
        Health::Unhealthy => Some(ServiceHealth::Unhealthy),
        Health::Starting => None,
    }
}

/// Does the health checks over HTTP; the instances that changed, beside the failures so far.
async fn probe(
    world: &Arc<World>,
    instances: &[(InstanceId, Snapshot<Instances>)],
    before: HashMap<(InstanceId, Role), u32>,
) -> (HashMap<(InstanceId, Role), u32>, Vec<InstanceId>) {
    let mut checks = Vec::new();
    for (id, seen) in instances.iter().filter(|(_, seen)| seen.intent.is_none()) {
        let instance = &seen.state;
        if !matches!(instance.state, InstanceState::Running | InstanceState::Degraded) {
            continue;
        }
        for part in instance.parts.iter().filter(|p| p.live.state == ServiceState::Running) {
            if let (Some(HealthCheck::Http(path)), Some(port)) =
                (&part.live.service().health_check, part.live.port)
            {
                checks.push((*id, part.role(), part.live.health, port, path.clone()));
            }
        }
    }
    let upstream = &world.ports.upstream;
    let checked = stream::iter(checks).map(|(id, role, health, port, path)| async move {
        (id, role, health, upstream.is_well(port, path.as_str(), PROBE_WITHIN).await)
    });
    let checked: Vec<_> = checked.buffer_unordered(PROBES).collect().await;
    let (mut failures, mut changed) = (HashMap::new(), Vec::new());
    for (id, role, health, well) in checked {
        if well {
            changed.extend((health != ServiceHealth::Healthy).then_some(id));
            continue;
        }
        let failed = before.get(&(id, role)).copied().unwrap_or(0) + 1;
        failures.insert((id, role), failed);
        let news = health == ServiceHealth::Healthy && failed >= FAILURES;
        changed.extend(news.then_some(id));
    }
    (failures, changed)
}

async fn look(world: &World, id: InstanceId, lost: Vec<Role>) {
    let Ok(owners) = world.owners() else { return };
    if let Err(fault) = owners.instances.ask_if_there(id, Command::Look(lost)).await {
        tracing::warn!(%id, error = %fault, "an instance was not told to look");
    }
}

/// The names of all containers that an instance's record knows of.
fn containers((id, seen): &(InstanceId, Snapshot<Instances>)) -> Vec<String> {
    let name = |role, generation| names::container(*id, role, generation);
    let mut all = Vec::new();
    for part in &seen.state.parts {
        all.push(name(part.role(), part.live.generation));
        all.extend(part.candidate.iter().map(|c| name(part.role(), c.next.generation)));
        all.extend(part.retired.iter().map(|retired| name(part.role(), retired.generation)));
    }
    all
}

/// Containers of ours that no record knows. They may be of a moment ago, so they are left alone for
/// a day; volumes are never removed here.
async fn remove_orphans(
    world: &World,
    inventory: &Inventory,
    instances: &[(InstanceId, Snapshot<Instances>)],
    now: Timestamp,
) {
    let known: HashSet<String> = instances.iter().flat_map(containers).collect();
    // What has just been made may not be in the records as they were read.
    let at_work = instances.iter().filter(|(_, seen)| seen.intent.is_some());
    let at_work: HashSet<String> = at_work.map(|(id, _)| id.to_string()).collect();
    let orphans = inventory.containers.iter().filter(|container| {
        let busy = container.labels.get(names::INSTANCE).is_some_and(|id| at_work.contains(id));
        let of_a_trial = container.labels.contains_key(names::BACKUP);
        !busy && !of_a_trial && !known.contains(&container.name)
    });
    let mut count = 0;
    for orphan in orphans {
        count += 1;
        if now.since(orphan.created_at) >= ORPHAN_FOR {
            match world.ports.engine.remove_container(&orphan.name).await {
                Ok(()) => {
                    tracing::warn!(name = orphan.name, "a container of no record was removed")
                }
                Err(e) => tracing::warn!(name = orphan.name, error = %e, "it was not removed"),
            }
        }
    }
    world.engine_health.orphans(count);
}

/// What is left of databases that backups were put into, and that nobody waits for any more: a request
/// that was given up may have been carried out later. There is nothing in them that is nowhere else.
async fn remove_trials(world: &World, inventory: &Inventory) {
    let engine = &world.ports.engine;
    let is_over = |id: BackupId| {
        let found = world.store.get::<Backups>(&id);
        found.is_ok_and(|found| !found.is_some_and(|backup| backup.on_trial))
    };
    let over = |labels: &Labels| {
        labels.get(names::BACKUP).and_then(|id| id.parse().ok()).is_some_and(is_over)
    };
    let mut gone = Vec::new();
    for container in inventory.containers.iter().filter(|container| over(&container.labels)) {
        gone.push(engine.remove_container(&container.name).await);
    }
    for volume in inventory.volumes.iter().filter(|volume| over(&volume.labels)) {
        gone.push(engine.remove_volume(&volume.name).await);
    }
    for network in inventory.networks.iter().filter(|network| over(&network.labels)) {
        gone.push(engine.remove_network(&network.name).await);
    }
    for e in gone.into_iter().filter_map(Result::err) {
        tracing::warn!(error = %e, "what is left of a verification was not removed");
    }
}

/// Takes a sample of every instance that runs.
async fn take_samples(world: &World, instances: &[(InstanceId, Snapshot<Instances>)]) {
    let now = world.ports.clock.now();
    world.last_looks.forget_old(now);
    for (id, seen) in instances {
        let instance = &seen.state;
        if !matches!(instance.state, InstanceState::Running | InstanceState::Degraded) {
            continue;
        }
        let Ok(looks) = metrics::look(world, *id, instance).await else { return };
        if looks.is_empty() {
            continue;
        }
        let services = looks
            .iter()
            .map(|(role, before, after)| metrics::service(*role, before.as_ref(), after));
        let sample = metrics::Sample::of(&metrics::sum(services, now));
        let key = metrics::Hour::key(*id, now);
        world.store.note(Change::new().merge::<metrics::Hour>(&key, sample));
    }
}

/// Removes what builds left behind, again and again. An engine that is away is asked the next time.
async fn tidy(world: Arc<World>, every: Duration) {
    loop {
        world.ports.clock.sleep(every).await;
        if let Err(e) = prune(&world).await {
            tracing::warn!(error = %e, "what builds left behind was not removed");
        }
    }
}

/// Tells instances to look when the engine says that something happened to them. What is missed
/// while the stream is lost, the next round finds.
async fn listen(world: Arc<World>) {
    let labels = names::of_installation(&world.ports.site.installation);
    loop {
        let since = world.ports.clock.now();
        match world.ports.engine.events(&labels, since).await {
            Ok(mut events) => {
                while let Some(Ok(event)) = events.next().await {
                    let owner = event.labels.get(names::INSTANCE);
                    if let Some(id) = owner.and_then(|id| id.parse().ok()) {
                        look(&world, id, Vec::new()).await;
                    }
                }
            }
            Err(e) => world.engine_health.lost(&e, world.ports.clock.now()),
        }
        world.ports.clock.sleep(RECONNECT).await;
    }
}
