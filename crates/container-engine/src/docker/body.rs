//! The request that creates a container.

use crate::{Capability, ContainerSpec, HealthCommand, Labels};
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthConfig, HostConfig, HostConfigLogConfig, Mount,
    MountType, NetworkingConfig, PortBinding, RestartPolicy, RestartPolicyNameEnum,
};
use std::{collections::HashMap, net::IpAddr, time::Duration};

/// Scratch folders hold sockets and small files. They count as memory of the container.
const SCRATCH: &str = "rw,noexec,nosuid,size=64m";
/// What a container may log before the oldest file is removed: three files of this size.
const LOG_SIZE: &str = "10m";
const LOG_FILES: &str = "3";
/// How often Docker checks the health of a container until it is healthy for the first time. Needs API
/// 1.44; an older engine waits for the usual interval.
const START_INTERVAL: Duration = Duration::from_millis(500);
/// Under pressure the kernel kills a container before it kills the daemon.
const OOM_SCORE: i64 = 200;
/// The weight of a container for each processor that it may use, where all want the processors at once. By
/// default, a container and a unit of systemd have 1024.
const CPU_SHARES: u32 = 32;
/// The smallest weight.
pub(super) const LEAST_CPU_SHARES: i64 = 2;

/// `publishes_at` is the address of the machine for the port of the container.
pub(super) fn of(spec: &ContainerSpec, publishes_at: IpAddr) -> ContainerCreateBody {
    let mut labels = map(&spec.labels);
    labels.insert(ContainerSpec::HASH_LABEL.to_owned(), spec.hash());
    let endpoint = EndpointSettings { aliases: Some(vec![spec.alias.clone()]), ..<_>::default() };
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        cmd: spec.command.clone(),
        env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        user: spec.user.clone(),
        labels: Some(labels),
        exposed_ports: spec.port.map(|port| vec![format!("{port}/tcp")]),
        healthcheck: Some(health(spec.health.as_ref())),
        stop_timeout: Some(whole_seconds(spec.grace)),
        host_config: Some(host(spec, publishes_at)),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(spec.network.clone(), endpoint)])),
        }),
        ..ContainerCreateBody::default()
    }
}

fn host(spec: &ContainerSpec, publishes_at: IpAddr) -> HostConfig {
    let memory = signed(spec.limits.memory);
    HostConfig {
        network_mode: Some(spec.network.clone()),
        port_bindings: spec.port.map(|port| {
            // The daemon chooses the port at every start.
            let here = PortBinding {
                host_ip: Some(publishes_at.to_string()),
                host_port: Some(String::new()),
            };
            HashMap::from([(format!("{port}/tcp"), Some(vec![here]))])
        }),
        mounts: Some(spec.mounts.iter().map(mount).collect()),
        tmpfs: Some(spec.scratch.iter().map(|path| (path.clone(), SCRATCH.to_owned())).collect()),
        readonly_rootfs: Some(spec.read_only),
        memory: Some(memory),
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(spec.limits.cpu_millis) * 1_000_000),
        cpu_shares: Some(cpu_shares(spec.limits.cpu_millis)),
        pids_limit: Some(i64::from(spec.limits.pids)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(spec.capabilities.iter().map(|c| name(*c).to_owned()).collect()),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        privileged: Some(false),
        ipc_mode: Some("private".to_owned()),
        init: Some(true),
        oom_score_adj: Some(OOM_SCORE),
        // The caller decides about restarts, not the daemon.
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), LOG_SIZE.to_owned()),
                ("max-file".to_owned(), LOG_FILES.to_owned()),
            ])),
        }),
        ..HostConfig::default()
    }
}

fn cpu_shares(cpu_millis: u32) -> i64 {
    LEAST_CPU_SHARES.max(i64::from(cpu_millis) * i64::from(CPU_SHARES) / 1000)
}

fn mount(mount: &crate::Mount) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(mount.volume.clone()),
        target: Some(mount.path.clone()),
        ..Mount::default()
    }
}

fn health(command: Option<&HealthCommand>) -> HealthConfig {
    let Some(health) = command else {
        // Disables a health check of the image.
        return HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() };
    };
    let test = std::iter::once("CMD").chain(health.command.iter().map(String::as_str));
    HealthConfig {
        test: Some(test.map(str::to_owned).collect()),
        interval: Some(nanos(health.interval)),
        timeout: Some(nanos(health.timeout)),
        retries: Some(i64::from(health.retries)),
        start_period: Some(nanos(health.start_period)),
        start_interval: Some(nanos(START_INTERVAL)),
    }
}

fn name(capability: Capability) -> &'static str {
    match capability {
        Capability::Chown => "CHOWN",
        Capability::DacOverride => "DAC_OVERRIDE",
        Capability::Fowner => "FOWNER",
        Capability::Kill => "KILL",
        Capability::SetGid => "SETGID",
        Capability::SetUid => "SETUID",
    }
}

pub(super) fn map(labels: &Labels) -> HashMap<String, String> {
    labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Seconds, rounded up: rounded down, they would kill too early.
pub(super) fn whole_seconds(time: Duration) -> i64 {
    signed(time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
