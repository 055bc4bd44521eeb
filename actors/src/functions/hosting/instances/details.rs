//! `svc_getInstanceDetails` and `svc_getInstanceSecrets`.

use super::{only_instance, seal_fault};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::hosting::instances::{container_spec, view::view},
};
use contract::{
    Fault, Serves,
    instance_helpers::{GetInstanceDetails, GetInstanceSecrets, InstanceSecrets},
    instances::Instance,
};

impl Serves<GetInstanceDetails> for Platform {
    async fn serve(&self, _: &Call, p: GetInstanceDetails) -> Result<Instance, Fault> {
        let (id, seen) = only_instance(&self.world, p.app_id, p.kind)?;
        Ok(view(&self.world, id, &seen.state))
    }
}

impl Serves<GetInstanceSecrets> for Platform {
    async fn serve(&self, cx: &Call, p: GetInstanceSecrets) -> Result<InstanceSecrets, Fault> {
        let (id, seen) = only_instance(&self.world, p.app_id, p.kind)?;
        let owner = id.to_string();
        let sealer = &self.world.ports.sealer;
        let secrets = container_spec::open_all(sealer, &owner, &seen.state.secrets);
        let secrets = secrets.map_err(seal_fault)?;
        cx.record(&owner).await?;
        Ok(InstanceSecrets { secrets })
    }
}
