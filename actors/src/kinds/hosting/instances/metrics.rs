//! Resource usage of instances: now, and of the last day. The engine answers with counters; a rate
//! needs two readings, so the last reading of each container is kept.

use super::{Instance, Service};
use crate::{
    kinds::{hosting::names, world::World},
    runtime::{
        side_record::{End, SideRecord},
        store::Store,
    },
};
use container_engine::Usage;
use contract::{
    Fault, InstanceId, Timestamp,
    instances::{Metrics, Role, ServiceMetrics, ServiceState},
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Mutex, time::Duration};
use store::Merge;

/// Two readings that are closer make no rate.
const CLOSEST: Duration = Duration::from_millis(500);
/// An older reading makes no rate.
const OLDEST: Duration = Duration::from_secs(120);
/// The pause between two readings when there is no earlier one.
const APART: Duration = Duration::from_secs(1);

/// The last reading of each container, by its name. Who reads at other moments needs readings of its own.
#[derive(Debug, Default)]
pub struct LastReadings(Mutex<HashMap<String, Usage>>);

impl LastReadings {
    fn replace(&self, name: &str, usage: Usage) -> Option<Usage> {
        let mut readings = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match readings.get(name) {
            // The earlier reading stays, so that the next one makes a rate.
            Some(before) if usage.at.since(before.at) < CLOSEST => Some(*before),
            _ => readings.insert(name.to_owned(), usage),
        }
    }

    /// Drops the readings of containers that are not read any more.
    pub fn forget_old(&self, now: Timestamp) {
        let mut readings = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        readings.retain(|_, usage| now.since(usage.at) < OLDEST);
    }
}

/// The used share of one processor between two readings, in percent. `None`: the container was
/// restarted between them, or they are too close or too far apart.
pub fn cpu_percent(before: &Usage, after: &Usage) -> Option<f64> {
    let apart = after.at.since(before.at);
    if before.started_at != after.started_at || !(CLOSEST..=OLDEST).contains(&apart) {
        return None;
    }
    let used = after.cpu_nanos.checked_sub(before.cpu_nanos)?;
    Some(round(used as f64 / apart.as_nanos() as f64 * 100.0))
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn percent(used: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { round(used as f64 / of as f64 * 100.0) }
}

/// The current usage. `None`: the instance does not run.
pub async fn current(
    world: &World,
    id: InstanceId,
    instance: &Instance,
) -> Result<Option<Metrics>, Fault> {
    let readings = read(world, &world.last_readings, id, instance).await?;
    if readings.is_empty() {
        return Ok(None);
    }
    let services = if readings.iter().all(|(_, before, after)| {
        before.as_ref().is_some_and(|before| cpu_percent(before, after).is_some())
    }) {
        readings
    } else {
        world.ports.clock.sleep(APART).await;
        read(world, &world.last_readings, id, instance).await?
    };
    let services =
        services.iter().map(|(role, before, after)| service(*role, before.as_ref(), after));
    Ok(Some(sum(services, world.ports.clock.now())))
}

/// For each service: the reading before, and the new one.
type Readings = Vec<(Role, Option<Usage>, Usage)>;

/// The usage since the last sample. `None`: the instance does not run.
pub async fn sample(
    world: &World,
    last: &LastReadings,
    id: InstanceId,
    instance: &Instance,
) -> Result<Option<Sample>, Fault> {
    let readings = read(world, last, id, instance).await?;
    if readings.is_empty() {
        return Ok(None);
    }
    let services = readings.iter().map(|(role, before, after)| {
        let rated = before.filter(|before| cpu_percent(before, after).is_some());
        service(*role, Some(&rated.unwrap_or_else(|| at_start(after))), after)
    });
    Ok(Some(Sample::of(&sum(services, world.ports.clock.now()))))
}

/// The reading that a container gave when it started.
fn at_start(later: &Usage) -> Usage {
    Usage { at: later.started_at, cpu_nanos: 0, ..*later }
}

/// Reads the counters of every running container.
async fn read(
    world: &World,
    last: &LastReadings,
    id: InstanceId,
    instance: &Instance,
) -> Result<Readings, Fault> {
    let host =
        world.host(instance.engine).map_err(|_| Fault::Unavailable("the container engine"))?;
    let mut readings = Vec::new();
    let running = |service: &&Service| service.live.state == ServiceState::Running;
    for service in instance.services.iter().filter(running) {
        let name = names::container(id, service.role, service.live.generation);
        match host.engine.usage(&name).await {
            Ok(Some(usage)) => {
                readings.push((service.role, last.replace(&name, usage), usage));
            }
            Ok(None) | Err(container_engine::EngineError::Missing(_)) => {}
            Err(e) => {
                tracing::warn!(%id, error = %e, "an instance cannot be measured");
                return Err(Fault::Unavailable("the container engine"));
            }
        }
    }
    Ok(readings)
}

fn service(role: Role, before: Option<&Usage>, after: &Usage) -> ServiceMetrics {
    ServiceMetrics {
        role,
        cpu_percent: before.and_then(|before| cpu_percent(before, after)),
        memory_bytes: after.memory,
        memory_limit_bytes: after.memory_limit,
        memory_percent: percent(after.memory, after.memory_limit),
        network_rx_bytes: after.received,
        network_tx_bytes: after.sent,
        pids: after.pids,
    }
}

/// The usage of all services together.
fn sum(services: impl Iterator<Item = ServiceMetrics>, at: Timestamp) -> Metrics {
    let services: Vec<_> = services.collect();
    let total = |of: fn(&ServiceMetrics) -> u64| services.iter().map(of).sum::<u64>();
    let memory = (total(|s| s.memory_bytes), total(|s| s.memory_limit_bytes));
    Metrics {
        sampled_at: at,
        cpu_percent: services.iter().map(|s| s.cpu_percent).sum::<Option<f64>>().map(round),
        memory_bytes: memory.0,
        memory_limit_bytes: memory.1,
        memory_percent: percent(memory.0, memory.1),
        network_rx_bytes: total(|s| s.network_rx_bytes),
        network_tx_bytes: total(|s| s.network_tx_bytes),
        pids: total(|s| s.pids),
        services,
    }
}

/// The samples of an instance within one hour, one a minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HourlyMetrics {
    /// Oldest first.
    pub samples: Vec<Sample>,
    /// When the record is removed.
    pub expires_at: Timestamp,
}

/// The usage of an instance at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// For each service: the processor share, then memory, its limit, bytes received and sent, and
    /// processes.
    #[serde(rename = "s")]
    pub services: Vec<(Role, Option<f64>, [u64; 5])>,
}

/// How long samples are kept: a day, and the hour that is being written.
const KEPT: Duration = Duration::from_secs(25 * 3600);
const HOUR: i64 = 3_600_000;

impl Sample {
    fn of(metrics: &Metrics) -> Sample {
        let service = |s: &ServiceMetrics| {
            let sizes = [
                s.memory_bytes,
                s.memory_limit_bytes,
                s.network_rx_bytes,
                s.network_tx_bytes,
                s.pids,
            ];
            (s.role, s.cpu_percent, sizes)
        };
        Sample { at: metrics.sampled_at, services: metrics.services.iter().map(service).collect() }
    }

    fn metrics(&self) -> Metrics {
        let service = |(role, cpu_percent, sizes): &(Role, Option<f64>, [u64; 5])| {
            let [memory_bytes, memory_limit_bytes, network_rx_bytes, network_tx_bytes, pids] =
                *sizes;
            ServiceMetrics {
                role: *role,
                cpu_percent: *cpu_percent,
                memory_bytes,
                memory_limit_bytes,
                memory_percent: percent(memory_bytes, memory_limit_bytes),
                network_rx_bytes,
                network_tx_bytes,
                pids,
            }
        };
        sum(self.services.iter().map(service), self.at)
    }
}

impl HourlyMetrics {
    /// The key of the hour of this moment.
    pub fn key(id: InstanceId, at: Timestamp) -> String {
        format!("{id}:{:08}", at.as_millis().div_euclid(HOUR))
    }
}

impl SideRecord for HourlyMetrics {
    fn end(&self) -> End {
        End::At(self.expires_at)
    }
}

impl Merge for HourlyMetrics {
    type Delta = Sample;
    fn merge(old: Option<Self>, sample: &Sample) -> Option<Self> {
        let first = || HourlyMetrics { samples: Vec::new(), expires_at: sample.at + KEPT };
        let mut hour = old.unwrap_or_else(first);
        hour.samples.push(sample.clone());
        Some(hour)
    }
}

/// The usage in the last `minutes`, oldest first.
pub fn history(
    store: &Store,
    id: InstanceId,
    now: Timestamp,
    minutes: u32,
) -> Result<Vec<Metrics>, Fault> {
    let since = Timestamp::from_millis(now.as_millis() - i64::from(minutes) * 60_000);
    let mut found = Vec::new();
    let hours = since.as_millis().div_euclid(HOUR)..=now.as_millis().div_euclid(HOUR);
    for hour in hours {
        let key = HourlyMetrics::key(id, Timestamp::from_millis(hour * HOUR));
        if let Some(hour) = store.get::<HourlyMetrics>(&key)? {
            let wanted = hour.samples.iter().filter(|sample| sample.at >= since);
            found.extend(wanted.map(Sample::metrics));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;

    fn usage(at: i64, started: i64, cpu_nanos: u64) -> Usage {
        Usage {
            at: Timestamp::from_millis(at),
            started_at: Timestamp::from_millis(started),
            cpu_nanos,
            memory: 50,
            memory_limit: 200,
            received: 1,
            sent: 2,
            pids: 3,
        }
    }

    #[test]
    fn a_rate_needs_two_readings_of_one_run() {
        let before = usage(10_000, 1, 1_000_000_000);
        assert_eq!(cpu_percent(&before, &usage(12_000, 1, 2_000_000_000)), Some(50.0));
        assert_eq!(cpu_percent(&before, &usage(12_000, 2, 2_000_000_000)), None, "restarted");
        assert_eq!(cpu_percent(&before, &usage(10_001, 1, 1_100_000_000)), None, "too close");
        assert_eq!(cpu_percent(&before, &usage(500_000, 1, 2_000_000_000)), None, "too old");
        let young = usage(2_001, 1, 500_000_000);
        assert_eq!(cpu_percent(&at_start(&young), &young), Some(25.0), "since its start");
        let unknown = service(Role::Server, None, &before);
        assert_eq!((unknown.cpu_percent, unknown.memory_percent), (None, 25.0));
        let known = service(Role::SqlDb, Some(&before), &usage(12_000, 1, 1_500_000_000));
        let both = sum([known, unknown].into_iter(), before.at);
        assert_eq!((both.cpu_percent, both.memory_bytes), (None, 100), "unknown is not zero");
    }

    #[test]
    fn samples_stay_for_a_day_and_the_hour_in_which_they_were_taken() {
        let at = |minutes: i64| Timestamp::from_millis(minutes * 60_000);
        let sample = |minutes| Sample { at: at(minutes), services: Vec::new() };
        let hour = (0..60).fold(None, |hour, n| HourlyMetrics::merge(hour, &sample(n))).unwrap();
        assert_eq!(hour.samples.len(), 60);
        assert_eq!(hour.end(), End::At(at(25 * 60)));
        let id = InstanceId::of(ulid::Ulid(1));
        assert_eq!(HourlyMetrics::key(id, at(0)), HourlyMetrics::key(id, at(59)));
        assert_ne!(HourlyMetrics::key(id, at(59)), HourlyMetrics::key(id, at(60)));
    }
}
