//! The handlers of the group Service.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::people::accounts::{AccountClaim, Accounts},
};
use contract::{
    Fault, Serves,
    service::{GetServiceInfo, ServiceInfo},
};

impl Serves<GetServiceInfo> for Platform {
    async fn serve(&self, _: &Call, _: GetServiceInfo) -> Result<ServiceInfo, Fault> {
        let site = &self.world.ports.site;
        let first = AccountClaim::FirstAdministrator;
        let awaits_administrator = self.settings.first_start_token.is_some()
            && self.world.store.held_by::<Accounts>(&first)?.is_none();
        Ok(ServiceInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            registration: site.registration,
            awaits_administrator,
            github_url: site.github.clone(),
        })
    }
}
