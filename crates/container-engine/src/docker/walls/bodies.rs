//! The containers of the walls, as the daemon is asked for them.

use crate::{
    Labels,
    docker::helpers::bodies::{body, small},
};
use bollard::models::{ContainerCreateBody, HostConfig};

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
        ..small(MEMORY)
    };
    body(image, labels, "0", &["/usr/libexec/svc/walls"], host)
}

/// The container that names the name servers. It is on the engine's default network, where they are said.
pub(super) fn resolvers(image: &str, labels: &Labels) -> ContainerCreateBody {
    let host = HostConfig { network_mode: Some("bridge".to_owned()), ..small(MEMORY) };
    body(image, labels, "keeper", &["/usr/libexec/svc/resolvers"], host)
}

/// The container that tries from this network to get out, to these addresses.
pub(super) fn probe(
    image: &str,
    labels: &Labels,
    network: &str,
    addresses: [&str; 2],
) -> ContainerCreateBody {
    let host = HostConfig { network_mode: Some(network.to_owned()), ..small(MEMORY) };
    let [machine, elsewhere] = addresses;
    body(image, labels, "keeper", &["/usr/libexec/svc/probe", machine, elsewhere], host)
}
