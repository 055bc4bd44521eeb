//! The container engines of other machines.

use container_engine::{Credentials, Engine};
use contract::{Timestamp, text::EngineAddress};
use std::{net::IpAddr, sync::Arc};

/// How an engine is reached, and by what it is known.
#[derive(Debug, Clone)]
pub struct Access {
    pub address: EngineAddress,
    pub credentials: Credentials,
    /// The address of its machine on which servers are published.
    pub publishes_at: IpAddr,
    /// What the engine calls itself. One that calls itself otherwise counts as unreachable. `None`: nobody
    /// has asked it yet.
    pub identity: Option<String>,
}

/// Makes connections to engines.
pub trait Engines: Send + Sync {
    /// The engine, which is reached on first use. The error says why it never will be.
    fn connect(&self, access: &Access) -> Result<Arc<dyn Engine>, String>;

    /// When a certificate in PEM expires. The error says why nobody knows.
    fn expiry(&self, certificate: &str) -> Result<Timestamp, String>;
}
