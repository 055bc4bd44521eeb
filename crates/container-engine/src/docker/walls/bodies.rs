//! The containers of the walls, as the daemon is asked for them.

use crate::{Labels, docker::body::map};
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use std::collections::HashMap;

/// Bytes of memory.
const MEMORY: i64 = 64 << 20;

/// The container that sets the rules: in the network of the engine's machine, with no capability but for
/// that network.
pub(super) fn keeper(image: &str, labels: &Labels) -> ContainerCreateBody {
    let host = HostConfig {
        network_mode: Some("host".to_owned()),
        // An engine that gives containers other users has none for the machine's network.
        userns_mode: Some("host".to_owned()),
        cap_add: Some(vec!["NET_ADMIN".to_owned()]),
        ..common()
    };
    body(image, labels, "0", &["/usr/libexec/svc/walls"], host)
}

/// The container that names the name servers. It is on the engine's default network, where they are said.
pub(super) fn resolvers(image: &str, labels: &Labels) -> ContainerCreateBody {
    let host = HostConfig { network_mode: Some("bridge".to_owned()), ..common() };
    body(image, labels, "keeper", &["/usr/libexec/svc/resolvers"], host)
}

/// The container that tries from this network to get out, to these addresses.
pub(super) fn probe(
    image: &str,
    labels: &Labels,
    network: &str,
    addresses: [&str; 2],
) -> ContainerCreateBody {
    let host = HostConfig { network_mode: Some(network.to_owned()), ..common() };
    let [machine, elsewhere] = addresses;
    body(image, labels, "keeper", &["/usr/libexec/svc/probe", machine, elsewhere], host)
}

fn body(
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

fn common() -> HostConfig {
    HostConfig {
        ipc_mode: Some("private".to_owned()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(MEMORY),
        memory_swap: Some(MEMORY),
        pids_limit: Some(64),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: Some(HashMap::new()),
        }),
        ..HostConfig::default()
    }
}
