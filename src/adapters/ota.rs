//! The target `ota`: an install page on the service itself. The page is made of the release when
//! somebody opens it, so publishing is only saying where it is.

use actors::ports::{PortError, Published, Publisher};
use async_trait::async_trait;
use contract::releases::{Publication, Release};

/// Install pages under an address.
pub struct Ota {
    api_url: String,
}

impl Ota {
    /// Install pages under this address.
    pub fn new(api_url: String) -> Self {
        Ota { api_url }
    }
}

#[async_trait]
impl Publisher for Ota {
    async fn publish(&self, release: &Release, _: &Publication) -> Result<Published, PortError> {
        Ok(Published::Live { url: Some(format!("{}/install/{}", self.api_url, release.id)) })
    }
}
