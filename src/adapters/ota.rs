//! Publishes to `ota`: an install page of this service. The page is rendered on request, so
//! publishing only returns its URL.

use actors::ports::{PortError, Published, Publisher};
use async_trait::async_trait;
use contract::releases::{Publication, Release};

pub struct Ota {
    api_url: String,
}

impl Ota {
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
