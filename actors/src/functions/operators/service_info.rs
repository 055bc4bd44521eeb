//! The handlers of the group Service.

use crate::call::{context::Call, platform::Platform};
use contract::{
    Fault, Serves,
    service::{GetServiceInfo, ServiceInfo},
};

impl Serves<GetServiceInfo> for Platform {
    async fn serve(&self, _: &Call, _: GetServiceInfo) -> Result<ServiceInfo, Fault> {
        let site = &self.world.ports.site;
        Ok(ServiceInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            registration: site.registration,
            builds_repositories: self.world.builds_repositories(),
            github_url: site.github.clone(),
        })
    }
}
