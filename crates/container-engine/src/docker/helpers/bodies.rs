//! What the containers of all helpers have in common, as the daemon is asked for them.

use crate::{Labels, docker::body::map};
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use std::collections::HashMap;

/// No capabilities, no network and no log.
pub fn bare() -> HostConfig {
    HostConfig {
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("private".to_owned()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        privileged: Some(false),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: Some(HashMap::new()),
        }),
        ..HostConfig::default()
    }
}

/// As [`bare`], for a program that gets no new privileges, writes no files, and needs so many bytes of memory.
pub fn small(memory: i64) -> HostConfig {
    HostConfig {
        readonly_rootfs: Some(true),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(memory),
        memory_swap: Some(memory),
        pids_limit: Some(64),
        ..bare()
    }
}

/// A container that runs this command.
pub fn body(
    image: &str,
    labels: &Labels,
    user: &str,
    command: &[&str],
    host: HostConfig,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        labels: Some(map(labels)),
        entrypoint: Some(command.iter().map(|part| (*part).to_owned()).collect()),
        cmd: Some(Vec::new()),
        user: Some(user.to_owned()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}
