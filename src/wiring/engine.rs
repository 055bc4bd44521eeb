//! The container engines, and what their containers may reach.

use crate::{
    adapters::{egress::Allowed, engines::DockerEngines, scratch},
    config::{ServeArgs, hosting::InstanceEgress, storage::NodesArg},
    secrets::{self, Keys},
};
use actors::{
    installation::engine,
    kinds::hosting::{engines, names},
    ports::random::Random,
    runtime::store::Store,
};
use container_engine::docker::{Docker, Recognizes};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use url::Url;

/// The engine is none of those that were added, and with several nodes the one that the store knows.
struct InStore {
    store: Store,
    nodes: NodesArg,
}

impl Recognizes for InStore {
    fn recognizes(&self, id: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            engines::refuse_added(&self.store, &id)?;
            match self.nodes {
                NodesArg::One => Ok(()),
                NodesArg::Several => engine::recognize(&self.store, &id).await,
            }
        })
    }
}

/// What all container engines have in common: walls around the networks of instances, unless the operator wants
/// none.
pub(super) fn engines(args: &ServeArgs, keys: &Keys) -> Result<DockerEngines, String> {
    let node = || secrets::node(&args.storage.data, &Random::default());
    let folder = args.storage.data.join("ssh");
    // A key is there only for the moment of a sign-in, and what a killed process left goes.
    scratch::empty(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(DockerEngines {
        folder,
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
    let known = InStore { store: store.clone().into(), nodes: args.storage.nodes };
    Ok(engines.prepared(docker, None).recognized_by(Arc::new(known)))
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
