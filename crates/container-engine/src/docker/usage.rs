//! The resource usage of containers.

use super::{
    containers,
    daemon::{Daemon, LOOK},
    errors::DaemonFailure,
    view,
};
use crate::{EngineError, Usage};
use bollard::{
    models::{ContainerMemoryStats, ContainerStatsResponse},
    query_parameters::StatsOptionsBuilder,
};
use contract::Timestamp;

pub(super) async fn usage(daemon: &Daemon, name: &str) -> Result<Option<Usage>, EngineError> {
    let Some(stats) = read(daemon, name)
        .await
        .map_err(|failure| failure.about(format_args!("container {name}")))?
    else {
        return Ok(None);
    };
    // Inspected afterwards: if the container was restarted in between, the sample is of the run
    // before.
    let container = containers::inspect(daemon, name)
        .await?
        .map(|found| view::container(found, daemon.publishes_at));
    let Some(container) = container.filter(crate::Container::is_running) else { return Ok(None) };
    Ok(container.started_at.and_then(|started_at| usage_of(&stats, started_at)))
}

/// One sample. For two, the daemon would take two seconds.
async fn read(
    daemon: &Daemon,
    name: &str,
) -> Result<Option<ContainerStatsResponse>, DaemonFailure> {
    let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
    let client = daemon.client().await?;
    let mut parts = client.stats(name, Some(options));
    match daemon.next(LOOK, &mut parts).await {
        Some(Ok(stats)) => Ok(Some(stats)),
        Some(Err(failure)) if failure.is(404) => Ok(None),
        Some(Err(failure)) => Err(failure),
        None => Err(DaemonFailure::Unreachable("it gave no figures".to_owned())),
    }
}

/// `None`: the sample is of an earlier run than the one that began at `started_at`, or of none.
fn usage_of(stats: &ContainerStatsResponse, started_at: Timestamp) -> Option<Usage> {
    // A container that does not run has a time in the year 1, and zeros.
    let at = stats.read.as_deref().and_then(view::moment)?;
    if at < started_at {
        return None;
    }
    let cpu = stats.cpu_stats.as_ref().and_then(|cpu| cpu.cpu_usage.as_ref()?.total_usage);
    let memory = stats.memory_stats.as_ref();
    let networks = || stats.networks.iter().flatten().map(|(_, network)| network);
    Some(Usage {
        at,
        started_at,
        cpu_nanos: cpu?,
        memory: memory.map(used).unwrap_or_default(),
        memory_limit: memory.and_then(|memory| memory.limit).unwrap_or_default(),
        received: networks().filter_map(|network| network.rx_bytes).sum(),
        sent: networks().filter_map(|network| network.tx_bytes).sum(),
        pids: stats.pids_stats.as_ref().and_then(|pids| pids.current).unwrap_or_default(),
    })
}

/// Without file cache that the kernel frees on demand, if the daemon reports it: cgroups of version
/// 1 under the first name, of version 2 under the second.
fn used(memory: &ContainerMemoryStats) -> u64 {
    let usage = memory.usage.unwrap_or_default();
    let told = memory.stats.as_ref();
    let idle = told
        .and_then(|stats| stats.get("total_inactive_file").or_else(|| stats.get("inactive_file")));
    idle.and_then(|idle| usage.checked_sub(*idle)).unwrap_or(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{ContainerCpuStats, ContainerCpuUsage};

    fn memory(usage: u64, told: &[(&str, u64)]) -> ContainerMemoryStats {
        let stats = told.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        ContainerMemoryStats { usage: Some(usage), stats: Some(stats), ..<_>::default() }
    }

    #[test]
    fn idle_files_are_not_used_memory() {
        let version_1 = memory(100, &[("total_inactive_file", 30), ("inactive_file", 1)]);
        assert_eq!(used(&version_1), 70);
        assert_eq!(used(&memory(100, &[("inactive_file", 30)])), 70);
        assert_eq!(used(&memory(100, &[])), 100);
        assert_eq!(used(&memory(100, &[("inactive_file", 101)])), 100);
    }

    #[test]
    fn a_sample_of_no_run_or_of_an_earlier_one_is_none() {
        let sample = |read: &str| ContainerStatsResponse {
            read: Some(read.to_owned()),
            cpu_stats: Some(ContainerCpuStats {
                cpu_usage: Some(ContainerCpuUsage { total_usage: Some(7), ..<_>::default() }),
                ..<_>::default()
            }),
            ..<_>::default()
        };
        let started_at = view::moment("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(usage_of(&sample("0001-01-01T00:00:00Z"), started_at), None);
        assert_eq!(usage_of(&sample("2026-01-31T11:59:59Z"), started_at), None);
        let usage = usage_of(&sample("2026-01-31T12:00:01Z"), started_at).unwrap();
        assert_eq!(usage.cpu_nanos, 7);
    }
}
