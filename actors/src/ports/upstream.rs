//! The servers in containers.

use async_trait::async_trait;
use std::{net::SocketAddr, time::Duration};

/// The servers in the containers of this service.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Whether the path responds in time with a status from 200 to 399.
    async fn is_healthy(&self, server: SocketAddr, path: &str, within: Duration) -> bool;
}
