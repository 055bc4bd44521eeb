//! Observes the containers of an instance: reads their state from the engine and checks their
//! health.

use super::plan::is_young;
use crate::kinds::{
    hosting::{
        engines::Host,
        instances::{
            record::Instance,
            service::{Service, VolumeUse},
        },
        names,
    },
    world::World,
};
use container_engine::{Container, EngineError, Exec, Health, Output, Phase};
use contract::{
    InstanceId, Timestamp,
    instances::{DesiredState, InstanceState, Role, ServiceHealth, ServiceState},
    templates::HealthCheck,
};
use futures_util::StreamExt;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

/// The containers of an instance that exist, by role and generation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    pub containers: BTreeMap<(Role, u32), ObservedContainer>,
    /// The services that are to run again on a volume with data, which is gone.
    pub without_volume: BTreeSet<Role>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedContainer {
    pub state: ServiceState,
    pub health: ServiceHealth,
    /// The port at the address of the engine's machine.
    pub port: Option<u16>,
    pub started_at: Option<Timestamp>,
    /// How the container ended, in words.
    pub ending: Option<String>,
}

impl Observation {
    pub fn get(&self, role: Role, generation: u32) -> Option<&ObservedContainer> {
        self.containers.get(&(role, generation))
    }
}

/// How long an HTTP health check may take.
const PROBE_WITHIN: Duration = Duration::from_secs(3);
/// How long a health check by a command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(5);
/// How long the engine may take to run it. It ends the program by itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How many checks in a row must fail before a healthy container counts as unhealthy.
const PROBES: u32 = 3;

/// Observes every container that the record names.
pub(super) async fn observe(
    world: &World,
    host: &Host,
    id: InstanceId,
    instance: &Instance,
) -> Result<Observation, EngineError> {
    let mut observation = Observation::default();
    for service in &instance.services {
        for generation in service.generations() {
            let name = names::container(id, service.role, generation);
            let found = host.engine.container(&name).await?;
            // A container with our name but without our label is not ours. Creating ours fails
            // with a conflict.
            let Some(container) = found.filter(|found| is_of(id, found)) else { continue };
            let health = health((world, host), instance, service, generation, &container).await;
            let observed = observed(&container, health);
            observation.containers.insert((service.role, generation), observed);
        }
    }
    observation.without_volume = without_volume((world, host), id, instance, &observation).await?;
    Ok(observation)
}

/// See [`Observation::without_volume`]. The volume of a running container is not looked at: the engine
/// removes none that is in use.
async fn without_volume(
    (world, host): (&World, &Host),
    id: InstanceId,
    instance: &Instance,
    observation: &Observation,
) -> Result<BTreeSet<Role>, EngineError> {
    let is_to_start = |service: &&Service| {
        let live = observation.get(service.role, service.live.generation);
        instance.desired == DesiredState::Running
            && live.is_none_or(|container| container.state != ServiceState::Running)
    };
    let with_data = instance.services.iter().filter(|service| service.volume != VolumeUse::None);
    let mut without: BTreeSet<Role> = with_data.filter(is_to_start).map(|s| s.role).collect();
    if without.is_empty() {
        return Ok(without);
    }
    let labels = names::of_instance(&world.ports.site.installation, id);
    let there = host.engine.inventory(&labels).await?.volumes;
    without.retain(|role| there.iter().all(|volume| volume.name != names::volume(id, *role)));
    Ok(without)
}

fn is_of(id: InstanceId, container: &Container) -> bool {
    container.labels.get(names::INSTANCE).is_some_and(|owner| *owner == id.to_string())
}

fn observed(container: &Container, health: ServiceHealth) -> ObservedContainer {
    let (state, ending) = match container.phase {
        Phase::Created => (ServiceState::Created, None),
        Phase::Running => (ServiceState::Running, None),
        Phase::Between => (ServiceState::Missing, None),
        Phase::Exited { code, out_of_memory } => {
            (ServiceState::Exited, Some(ending(code, out_of_memory)))
        }
    };
    let (port, started_at) = (container.port, container.started_at);
    ObservedContainer { state, health, port, started_at, ending }
}

async fn health(
    (world, host): (&World, &Host),
    instance: &Instance,
    service: &Service,
    generation: u32,
    container: &Container,
) -> ServiceHealth {
    // Retired revisions are not checked.
    let revision = service.revision(generation);
    match revision.and_then(|revision| revision.template().health_check.as_ref()) {
        _ if !container.is_running() => ServiceHealth::Unknown,
        None => ServiceHealth::Healthy,
        Some(HealthCheck::Command(command)) => match container.health {
            Some(Health::Healthy) => ServiceHealth::Healthy,
            Some(Health::Unhealthy) => ServiceHealth::Unhealthy,
            // The engine runs the command for the first time after some seconds. A start does not
            // wait for that. A container that takes longer is left to the engine, which checks less
            // often: many instances may start at the same time.
            Some(Health::Starting) | None
                if is_young(container.started_at, world.ports.clock.now()) =>
            {
                let command = command.iter().map(ToString::to_string).collect();
                run((world, host), &container.name, command).await
            }
            Some(Health::Starting) | None => ServiceHealth::Starting,
        },
        Some(HealthCheck::Http(path)) => {
            probe((world, host), instance, container.port, path.as_str()).await
        }
    }
}

async fn run(
    (world, host): (&World, &Host),
    container: &str,
    command: Vec<String>,
) -> ServiceHealth {
    let exec = Exec { command, env: BTreeMap::new(), user: None, within: COMMAND_WITHIN };
    let passed = async {
        let mut output = host.engine.exec(container, exec, None).await.ok()?;
        while let Some(part) = output.next().await {
            if let Output::Exit(code) = part.ok()? {
                return Some(code == 0);
            }
        }
        None
    };
    match world.ports.clock.limit(ANSWER_WITHIN, passed).await {
        Some(Some(true)) => ServiceHealth::Healthy,
        _ => ServiceHealth::Starting,
    }
}

async fn probe(
    (world, host): (&World, &Host),
    instance: &Instance,
    port: Option<u16>,
    path: &str,
) -> ServiceHealth {
    let Some(port) = port else { return ServiceHealth::Starting };
    let server = SocketAddr::new(host.address, port);
    let is_up = matches!(instance.state, InstanceState::Running | InstanceState::Degraded);
    for _ in 0..if is_up { PROBES } else { 1 } {
        if world.ports.upstream.is_healthy(server, path, PROBE_WITHIN).await {
            return ServiceHealth::Healthy;
        }
    }
    if is_up { ServiceHealth::Unhealthy } else { ServiceHealth::Starting }
}

fn ending(code: Option<i64>, out_of_memory: bool) -> String {
    match code {
        _ if out_of_memory => "ran out of memory".into(),
        Some(0) => "ended by itself with code 0".into(),
        Some(137) => "was killed".into(),
        Some(code) => format!("failed with code {code}"),
        None => "ended".into(),
    }
}
