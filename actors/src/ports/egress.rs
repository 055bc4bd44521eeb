//! What isolated builds and instances reach.

use super::PortError;
use contract::OrganizationId;
use futures_util::future::BoxFuture;
use std::{collections::BTreeMap, net::SocketAddr, path::Path};

/// Opens doors to the internet.
pub trait Egress: Send + Sync {
    /// Opens a door for a build of an organization, or of the service itself. It leads to public addresses,
    /// and to the hosts that an operator allows.
    fn open(&self, organization: Option<OrganizationId>) -> Result<Box<dyn Door>, PortError>;

    /// What instances reach of the inside, as it is now. `None`: the operator chose to let instances reach
    /// all that this machine reaches.
    fn of_instances(&self) -> BoxFuture<'_, Option<Reached>>;
}

/// The addresses of the inside that instances reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// All instances.
    pub by_all: Vec<SocketAddr>,
    /// Those of one organization.
    pub by_organization: BTreeMap<OrganizationId, Vec<SocketAddr>>,
}

/// A proxy for one build. Dropping the door closes it, with all connections through it.
pub trait Door: Send + Sync {
    /// A folder of this machine with the Unix socket `proxy.sock`.
    fn folder(&self) -> &Path;
    /// The ports of 127.0.0.1 that the proxy leads to.
    fn loopback(&self) -> Vec<u16>;
    /// What the proxy refused since the last call, once for each host and port, for the log of the build.
    fn refused(&self) -> Vec<String>;
}
