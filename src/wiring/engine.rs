//! The container engines, and what their containers may reach.

use crate::{
    adapters::{egress::Allowed, engines::DockerEngines},
    config::{ServeArgs, hosting::InstanceEgress, storage::NodesArg},
    secrets::{self, Keys},
};
use actors::{
    installation::engine, kinds::hosting::names, ports::random::Random, runtime::store::Store,
};
use container_engine::docker::{Docker, Recognizes};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use url::Url;

/// The engine is the one that the store knows.
struct InStore(Store);

impl Recognizes for InStore {
    fn recognizes(&self, id: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { engine::recognize(&self.0, &id).await })
    }
}

/// What all container engines have in common: walls around the networks of instances, unless the operator wants
/// none.
pub(super) fn engines(args: &ServeArgs, keys: &Keys) -> Result<DockerEngines, String> {
    let node = || secrets::node(&args.storage.data, &Random::default());
    Ok(DockerEngines {
        builder_base: args.builds.builder_base_image.clone(),
        node: match args.storage.nodes {
            NodesArg::One => None,
            NodesArg::Several => Some(node().map_err(|e| format!("the name of this node: {e}"))?),
        },
        walled: match args.hosting.instance_egress {
            InstanceEgress::Public => Some(names::of_installation(&keys.application_id)),
            InstanceEgress::All => None,
        },
    })
}

/// The container engine of the settings.
pub(super) fn own_engine(
    args: &ServeArgs,
    engines: &DockerEngines,
    store: &store::Store,
) -> Result<Docker, String> {
    let docker = Docker::connect(args.hosting.docker_host.as_deref()).map_err(|e| e.to_string())?;
    let docker = engines.prepared(docker, None);
    Ok(match args.storage.nodes {
        NodesArg::One => docker,
        NodesArg::Several => docker.recognized_by(Arc::new(InStore(store.clone().into()))),
    })
}

/// What builds and instances reach of the inside. Where this service serves everybody, it serves instances
/// too.
pub(super) fn allowed(args: &ServeArgs) -> Result<Allowed, String> {
    let service = Url::parse(&args.network.api_url())
        .map_err(|e| format!("the address of the service: {e}"))?;
    let tls = args.tls.https_listen.map(|address| address.port());
    let ports = service.port_or_known_default().into_iter().chain(tls);
    let host = service.host_str().unwrap_or_default();
    let own = ports.map(|port| (host.to_owned(), port));
    let of_all = own.chain(args.hosting.instance_private_hosts.iter().cloned());
    Ok(Allowed {
        builds: args.builds.build_private_hosts.clone(),
        instances: (args.hosting.instance_egress == InstanceEgress::Public)
            .then(|| of_all.collect()),
        organizations: args.hosting.organization_private_hosts.clone(),
    })
}
