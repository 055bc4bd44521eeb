//! Finds instances at rest that differ from their records.

use super::Recorded;
use crate::kinds::{
    hosting::{
        engines::Host,
        instances::{Instance, Service},
        names,
    },
    world::World,
};
use container_engine::{Container, Health};
use contract::{
    InstanceId,
    instances::{InstanceState, Role, ServiceHealth, ServiceState},
    templates::HealthCheck,
};
use futures_util::{StreamExt, stream};
use std::{collections::HashMap, net::SocketAddr, time::Duration};

/// Health checks that run at the same time.
const CONCURRENT_CHECKS: usize = 32;
/// How long one health check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(3);
/// How many checks in a row must fail before a healthy service counts as unhealthy.
const MOST_FAILURES: u32 = 3;

/// Failed health checks in a row, by service.
pub(super) type Failures = HashMap<(InstanceId, Role), u32>;

/// The services of an instance whose container is not at the recorded port.
pub(super) fn lost(
    id: InstanceId,
    instance: &Instance,
    containers: &HashMap<&str, &Container>,
) -> Vec<Role> {
    let is_lost = |service: &&Service| {
        let name = names::container(id, service.role, service.live.generation);
        let running = containers.get(name.as_str()).filter(|container| container.is_running());
        service.live.port.is_some() && running.is_none_or(|c| c.port != service.live.port)
    };
    instance.services.iter().filter(is_lost).map(|service| service.role).collect()
}

/// `Some` if an instance differs from its record, with the services whose container is not at the
/// recorded port.
pub(super) fn drift(
    id: InstanceId,
    instance: &Instance,
    containers: &HashMap<&str, &Container>,
) -> Option<Vec<Role>> {
    let (lost, mut drifted) = (lost(id, instance, containers), false);
    for service in &instance.services {
        let (live, role) = (&service.live, service.role);
        let found = containers.get(names::container(id, role, live.generation).as_str()).copied();
        let running = found.filter(|container| container.is_running());
        let health = running.and_then(|container| reported(container.health));
        drifted |= match instance.state {
            InstanceState::Running | InstanceState::Degraded => {
                let changed = running.is_none() || health.is_some_and(|h| h != live.health);
                !service.left_out && changed
            }
            InstanceState::Stopped => running.is_some(),
            InstanceState::Failed => running.is_some() != (live.state == ServiceState::Running),
            _ => false,
        };
        drifted |= running.is_some_and(|c| c.port != live.port);
    }
    (drifted || !lost.is_empty()).then_some(lost)
}

/// The result of a health check that the engine runs as a command.
fn reported(health: Option<Health>) -> Option<ServiceHealth> {
    match health? {
        Health::Healthy => Some(ServiceHealth::Healthy),
        Health::Unhealthy => Some(ServiceHealth::Unhealthy),
        Health::Starting => None,
    }
}

/// Runs the HTTP health checks. Returns the failures in a row and the instances whose health
/// changed.
pub(super) async fn check_health(
    (world, host): (&World, &Host),
    instances: &[Recorded],
    before: Failures,
) -> (Failures, Vec<InstanceId>) {
    let mut checks = Vec::new();
    for (id, seen) in instances.iter().filter(|(_, seen)| seen.pending().is_none()) {
        let instance = &seen.state;
        if !matches!(instance.state, InstanceState::Running | InstanceState::Degraded) {
            continue;
        }
        for service in instance.services.iter().filter(|s| s.live.state == ServiceState::Running) {
            if let (Some(HealthCheck::Http(path)), Some(port)) =
                (&service.live.template().health_check, service.live.port)
            {
                let server = SocketAddr::new(host.address, port);
                checks.push((*id, service.role, service.live.health, server, path.clone()));
            }
        }
    }
    let upstream = &world.ports.upstream;
    let checked = stream::iter(checks).map(|(id, role, health, server, path)| async move {
        (id, role, health, upstream.is_healthy(server, path.as_str(), CHECK_LIMIT).await)
    });
    let checked: Vec<_> = checked.buffer_unordered(CONCURRENT_CHECKS).collect().await;
    let (mut failures, mut changed) = (Failures::new(), Vec::new());
    for (id, role, health, healthy) in checked {
        if healthy {
            changed.extend((health != ServiceHealth::Healthy).then_some(id));
            continue;
        }
        let failed = before.get(&(id, role)).copied().unwrap_or(0) + 1;
        failures.insert((id, role), failed);
        let is_news = health == ServiceHealth::Healthy && failed >= MOST_FAILURES;
        changed.extend(is_news.then_some(id));
    }
    (failures, changed)
}
