//! The way out of isolated builds.

use super::PortError;
use std::{any::Any, path::PathBuf, sync::Arc};

/// Opens doors to the internet.
pub trait Egress: Send + Sync {
    /// Opens a door for a build. It leads to public addresses, and to the hosts that an operator allows.
    fn open(&self) -> Result<Door, PortError>;
}

/// A proxy for one build. Dropping the door closes it, with all connections through it.
pub struct Door {
    /// A folder of this machine with the Unix socket `proxy.sock`.
    pub folder: PathBuf,
    /// The ports of 127.0.0.1 that the proxy leads to.
    pub loopback: Vec<u16>,
    /// What the proxy refused, once for each host and port, for the log of the build.
    pub refused: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Keeps the proxy running.
    pub guard: Box<dyn Any + Send + Sync>,
}
