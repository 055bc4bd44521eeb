//! What instances use: now, and over the last day. The engine gives counters; a rate needs two
//! looks, so the last look at each container is kept.

use super::{Instance, names};
use crate::{
    runtime::{entries::Deadline, store::Store},
    world::World,
};
use container_engine::Usage;
use contract::{
    Fault, InstanceId, Timestamp,
    instances::{Metrics, Role, ServiceMetrics, ServiceState},
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Mutex, time::Duration};
use store::{Entries, Merge, Record};

/// Two looks closer than this make no rate.
const CLOSEST: Duration = Duration::from_millis(500);
/// A look older than this says nothing of now.
const OLDEST: Duration = Duration::from_secs(120);
/// Where there is no earlier look, one is taken this long before.
const APART: Duration = Duration::from_secs(1);

/// The last look at each container, by its name.
#[derive(Debug, Default)]
pub struct LastLooks(Mutex<HashMap<String, Usage>>);

impl LastLooks {
    fn replace(&self, name: &str, usage: Usage) -> Option<Usage> {
        let mut looks = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match looks.get(name) {
            // Too close: the earlier one stays, so that the next look has something to compare with.
            Some(before) if usage.at.since(before.at) < CLOSEST => Some(*before),
            _ => looks.insert(name.to_owned(), usage),
        }
    }

    /// Forgets containers that are not looked at any more.
    pub fn forget_old(&self, now: Timestamp) {
        let mut looks = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        looks.retain(|_, usage| now.since(usage.at) < OLDEST);
    }
}

/// The share of one processor that was used between two looks, in percent. `None`: the looks are of
/// two runs of the container, or too close or too far apart.
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

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { round(part as f64 / of as f64 * 100.0) }
}

/// What an instance uses now. Refused where it does not run: that is not zero.
pub async fn current(world: &World, id: InstanceId, instance: &Instance) -> Result<Metrics, Fault> {
    let looks = look(world, id, instance).await?;
    if looks.is_empty() {
        return Err(Fault::NotNow(format!(
            "this instance is {}; start it to see what it uses",
            format!("{:?}", instance.state).to_lowercase()
        )));
    }
    let services = if looks.iter().all(|(_, before, after)| {
        before.as_ref().is_some_and(|before| cpu_percent(before, after).is_some())
    }) {
        looks
    } else {
        world.ports.clock.sleep(APART).await;
        look(world, id, instance).await?
    };
    Ok(sum(services.iter().map(|(role, before, after)| service(*role, before.as_ref(), after)), {
        world.ports.clock.now()
    }))
}

type Looks = Vec<(Role, Option<Usage>, Usage)>;

/// Looks at every container that serves; what was seen before, and now.
pub async fn look(world: &World, id: InstanceId, instance: &Instance) -> Result<Looks, Fault> {
    let mut looks = Vec::new();
    for part in instance.parts.iter().filter(|part| part.live.state == ServiceState::Running) {
        let name = names::container(id, part.role(), part.live.generation);
        match world.ports.engine.usage(&name).await {
            Ok(Some(usage)) => {
                looks.push((part.role(), world.last_looks.replace(&name, usage), usage));
            }
            Ok(None) | Err(container_engine::EngineError::Missing(_)) => {}
            Err(e) => {
                tracing::warn!(%id, error = %e, "an instance cannot be measured");
                return Err(Fault::Unavailable("the container engine"));
            }
        }
    }
    Ok(looks)
}

/// What one service uses.
pub fn service(role: Role, before: Option<&Usage>, after: &Usage) -> ServiceMetrics {
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

/// What all services use together.
pub fn sum(services: impl Iterator<Item = ServiceMetrics>, at: Timestamp) -> Metrics {
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

/// One hour of samples of an instance, one a minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hour {
    /// The samples, oldest first.
    pub samples: Vec<Sample>,
    /// When it is forgotten.
    pub expires_at: Timestamp,
}

/// What an instance used at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// What each service used.
    #[serde(rename = "s")]
    pub services: Vec<(Role, Option<f64>, [u64; 5])>,
}

/// How long samples are kept: a day, and the hour that is being written.
const KEPT: Duration = Duration::from_secs(25 * 3600);
const HOUR: i64 = 3_600_000;

impl Sample {
    /// Of metrics.
    pub fn of(metrics: &Metrics) -> Sample {
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

impl Hour {
    /// The key of the hour of this moment.
    pub fn key(id: InstanceId, at: Timestamp) -> String {
        format!("{id}:{:08}", at.as_millis().div_euclid(HOUR))
    }
}

impl Record for Hour {
    const TREE: &'static str = "metrics";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;

    fn index(hour: &Self) -> Entries<Self> {
        Entries::default().and(Deadline(hour.expires_at))
    }
}

impl Merge for Hour {
    type Delta = Sample;
    fn merge(old: Option<Self>, sample: &Sample) -> Option<Self> {
        let first = || Hour { samples: Vec::new(), expires_at: sample.at + KEPT };
        let mut hour = old.unwrap_or_else(first);
        hour.samples.push(sample.clone());
        Some(hour)
    }
}

/// What an instance used in the last `minutes`, oldest first.
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
        let key = Hour::key(id, Timestamp::from_millis(hour * HOUR));
        if let Some(hour) = store.get::<Hour>(&key)? {
            let wanted = hour.samples.iter().filter(|sample| sample.at >= since);
            found.extend(wanted.map(Sample::metrics));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_rate_needs_two_looks_at_one_run() {
        let before = usage(10_000, 1, 1_000_000_000);
        assert_eq!(cpu_percent(&before, &usage(12_000, 1, 2_000_000_000)), Some(50.0));
        assert_eq!(cpu_percent(&before, &usage(12_000, 2, 2_000_000_000)), None, "restarted");
        assert_eq!(cpu_percent(&before, &usage(10_001, 1, 1_100_000_000)), None, "too close");
        assert_eq!(cpu_percent(&before, &usage(500_000, 1, 2_000_000_000)), None, "too old");
        let unknown = service(Role::Server, None, &before);
        assert_eq!((unknown.cpu_percent, unknown.memory_percent), (None, 25.0));
        let known = service(Role::SqlDb, Some(&before), &usage(12_000, 1, 1_500_000_000));
        let both = sum([known, unknown].into_iter(), before.at);
        assert_eq!((both.cpu_percent, both.memory_bytes), (None, 100), "unknown is not zero");
    }
}
