//! Reads containers as the daemon reports them.

use crate::{Container, Health, Labels, Phase};
use bollard::models::{
    ContainerInspectResponse, ContainerState, ContainerStateStatusEnum, ContainerSummary,
    ContainerSummaryStateEnum, HealthStatusEnum, PortMap,
};
use contract::Timestamp;
use std::{collections::HashMap, net::IpAddr};

/// Stands for a time that the daemon does not report, though it should.
const UNKNOWN: Timestamp = Timestamp::from_millis(0);

/// Reads an inspection, which contains everything that the daemon knows.
/// `publishes_at` is the address on which our ports are published.
pub(super) fn container(found: ContainerInspectResponse, publishes_at: IpAddr) -> Container {
    let state = found.state.unwrap_or_default();
    let phase = phase(&state);
    let ports = found.network_settings.and_then(|network| network.ports).unwrap_or_default();
    let is_running = phase == Phase::Running;
    Container {
        name: bare(&found.name.unwrap_or_default()),
        id: found.id.unwrap_or_default(),
        labels: labels(found.config.and_then(|config| config.labels)),
        image: found.image.unwrap_or_default(),
        phase,
        // After the end, the daemon reports the last health or none.
        health: state.health.and_then(|h| health(h.status?)).filter(|_| is_running),
        port: published(&ports, publishes_at).filter(|_| is_running),
        created_at: found.created.as_deref().and_then(moment).unwrap_or(UNKNOWN),
        started_at: state.started_at.as_deref().and_then(moment),
    }
}

fn phase(state: &ContainerState) -> Phase {
    match state.status {
        Some(ContainerStateStatusEnum::CREATED) => Phase::Created,
        // A paused container runs, but does not answer.
        Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::PAUSED) => {
            Phase::Running
        }
        Some(ContainerStateStatusEnum::EXITED) => Phase::Exited {
            code: state.exit_code,
            out_of_memory: state.oom_killed.unwrap_or(false),
        },
        _ => Phase::Between,
    }
}

fn health(status: HealthStatusEnum) -> Option<Health> {
    match status {
        HealthStatusEnum::STARTING => Some(Health::Starting),
        HealthStatusEnum::HEALTHY => Some(Health::Healthy),
        HealthStatusEnum::UNHEALTHY => Some(Health::Unhealthy),
        HealthStatusEnum::NONE | HealthStatusEnum::EMPTY => None,
    }
}

fn published(ports: &PortMap, at: IpAddr) -> Option<u16> {
    let bindings = ports.values().flatten().flatten();
    let mut here = bindings.filter(|binding| is_at(binding.host_ip.as_deref(), at));
    here.find_map(|binding| binding.host_port.as_deref()?.parse().ok())
}

fn is_at(text: Option<&str>, address: IpAddr) -> bool {
    text.and_then(|text| text.parse::<IpAddr>().ok()) == Some(address)
}

/// Reads an entry of a list, where health and exit code are words in a sentence.
pub(super) fn summary(found: ContainerSummary, publishes_at: IpAddr) -> Container {
    let name = name(&found);
    let status = found.status.unwrap_or_default();
    let phase = match found.state {
        Some(ContainerSummaryStateEnum::CREATED) => Phase::Created,
        Some(ContainerSummaryStateEnum::RUNNING | ContainerSummaryStateEnum::PAUSED) => {
            Phase::Running
        }
        Some(ContainerSummaryStateEnum::EXITED) => {
            Phase::Exited { code: exit_code(&status), out_of_memory: false }
        }
        _ => Phase::Between,
    };
    let ports = found.ports.iter().flatten();
    let mut here = ports.filter(|port| is_at(port.ip.as_deref(), publishes_at));
    Container {
        name,
        id: found.id.unwrap_or_default(),
        labels: labels(found.labels),
        image: found.image_id.unwrap_or_default(),
        phase,
        health: health_in(&status),
        port: here.find_map(|port| port.public_port),
        // Lists report whole seconds.
        created_at: Timestamp::from_millis(found.created.unwrap_or(0).saturating_mul(1000)),
        started_at: None,
    }
}

/// The name of a container in a list.
pub(super) fn name(found: &ContainerSummary) -> String {
    found.names.iter().flatten().next().map(|name| bare(name)).unwrap_or_default()
}

/// From `Exited (137) 5 minutes ago`.
fn exit_code(status: &str) -> Option<i64> {
    status.strip_prefix("Exited (")?.split_once(')')?.0.parse().ok()
}

/// From `Up 5 minutes (healthy)`.
fn health_in(status: &str) -> Option<Health> {
    let (_, word) = status.strip_prefix("Up ")?.strip_suffix(')')?.rsplit_once('(')?;
    match word {
        "health: starting" => Some(Health::Starting),
        "healthy" => Some(Health::Healthy),
        "unhealthy" => Some(Health::Unhealthy),
        _ => None,
    }
}

pub(super) fn labels(found: Option<HashMap<String, String>>) -> Labels {
    found.unwrap_or_default().into_iter().collect()
}

/// The daemon's names begin with a slash.
fn bare(name: &str) -> String {
    name.trim_start_matches('/').to_owned()
}

/// Parses a time. A time before 1970 stands for "never".
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>().ok().filter(|at| at.as_millis() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_lists_are_understood() {
        assert_eq!(exit_code("Exited (137) 5 minutes ago"), Some(137));
        assert_eq!(exit_code("Exited (0) Less than a second ago"), Some(0));
        assert_eq!(exit_code("Up 5 minutes"), None);
        assert_eq!(health_in("Up 5 minutes (healthy)"), Some(Health::Healthy));
        assert_eq!(health_in("Up 2 hours (unhealthy)"), Some(Health::Unhealthy));
        assert_eq!(health_in("Up 1 second (health: starting)"), Some(Health::Starting));
        assert_eq!(health_in("Up About an hour"), None);
        assert_eq!(health_in("Up 5 minutes (Paused)"), None);
        assert_eq!(health_in("Exited (0) 3 seconds ago"), None);
    }

    #[test]
    fn never_is_no_moment() {
        assert_eq!(moment("0001-01-01T00:00:00Z"), None);
        let at = moment("2026-01-31T12:00:00.123456789Z").unwrap();
        assert_eq!(at.to_string(), "2026-01-31T12:00:00.123Z");
        assert_eq!(moment("2026-01-31T14:00:00.5+02:00").unwrap().as_millis() % 1000, 500);
    }
}
