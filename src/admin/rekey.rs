//! Encrypts every secret in the store with a new key.

use super::{dump::open, note};
use crate::{secrets, wiring::sealer};
use actix_rt::SystemRunner;
use actors::{
    kinds::{
        deployments::DeploymentHistory,
        table::{self, Visitor},
    },
    operators::installation::{Installation, This},
    ports::{Random, sealed::Sealer},
    runtime::resource::Resource,
};
use std::path::Path;
use store::{Change, Record, Store};

/// Makes a new encryption key, seals every secret with it, and forgets the old key. An interrupted
/// run is continued: until the end, the key file has both keys.
pub fn rekey(data: &Path) -> Result<(), String> {
    let store = open(data)?;
    let done = seal_anew(&store, data);
    store.close();
    note(&format!("sealed {} secrets with a new encryption key", done?));
    note(&format!(
        "copy {} to the place of your backups; a backup of the store from before needs the old file",
        secrets::keys_path(data).display()
    ));
    Ok(())
}

fn seal_anew(store: &Store, data: &Path) -> Result<usize, String> {
    let at = |e: std::io::Error| format!("{}: {e}", secrets::keys_path(data).display());
    let keys = secrets::begin_rekey(data, &Random::default()).map_err(at)?;
    let sealed = reseal(store, sealer(&keys)?)?;
    // Until the key file forgets the older key, the server starts with both.
    know(store, keys.installation())?;
    secrets::end_rekey(data, keys).map_err(at)?;
    Ok(sealed)
}

/// Writes with which keys the store is written.
fn know(store: &Store, present: Installation) -> Result<(), String> {
    let known = store.get::<Installation>(&This).map_err(|e| e.to_string())?;
    let change = Change::new().replace::<Installation>(&This, known.as_deref(), present);
    actix_rt::System::new().block_on(store.commit(change)).map_err(|e| e.to_string())
}

/// Seals with the current key of the sealer what its older keys sealed. Returns how many secrets
/// that were.
fn reseal(store: &Store, sealer: Sealer) -> Result<usize, String> {
    let mut records = Records { store, sealer, system: actix_rt::System::new(), sealed: 0 };
    table::visit(&mut records)?;
    records.every::<DeploymentHistory>(|key| DeploymentHistory::instance(key).to_owned())?;
    Ok(records.sealed)
}

/// How many keys are read at a time.
const PAGE: usize = 500;

/// Seals the secrets in the records of one kind after the other.
struct Records<'a> {
    store: &'a Store,
    sealer: Sealer,
    system: SystemRunner,
    sealed: usize,
}

impl Visitor for Records<'_> {
    type Error = String;

    fn visit<R: Resource>(&mut self) -> Result<(), String> {
        self.every::<R>(ToString::to_string)
    }
}

impl Records<'_> {
    /// Every record of a kind. `owner` names the object for which the record with a key seals, apart
    /// from those that its content names.
    fn every<R: Record>(&mut self, owner: impl Fn(&R::Key) -> String) -> Result<(), String> {
        let mut before: Option<R::Key> = None;
        loop {
            let keys = self.store.keys::<R>(before.as_ref(), PAGE).map_err(|e| e.to_string())?;
            for key in &keys {
                let done = self.one::<R>(key, &owner(key));
                done.map_err(|e| format!("{} {key}: {e}", R::TREE))?;
            }
            let Some(last) = keys.into_iter().last() else { return Ok(()) };
            before = Some(last);
        }
    }

    fn one<R: Record>(&mut self, key: &R::Key, owner: &str) -> Result<(), String> {
        let found = self.store.get::<R>(key).map_err(|e| e.to_string())?;
        let Some(before) = found else { return Ok(()) };
        let mut record = serde_json::to_value(&**before).map_err(|e| e.to_string())?;
        let count = self.sealer.reseal(owner, &mut record).map_err(|e| e.to_string())?;
        if count == 0 {
            return Ok(());
        }
        let after: R::Content = serde_json::from_value(record).map_err(|e| e.to_string())?;
        let change = Change::new().replace::<R>(key, Some(&before), after);
        self.system.block_on(self.store.commit(change)).map_err(|e| e.to_string())?;
        self.sealed += count;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]
mod tests {
    use super::*;
    use actors::platform::kinds;
    use contract::{InstanceId, deployments::DeploymentTarget};
    use store::Memory;

    /// A rollback to what the instance was created with needs these variables.
    #[test]
    fn the_variables_that_a_deployment_history_keeps_are_sealed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), &kinds(), Memory::default()).unwrap();
        let owner = "ins_00000000000000000000000007";
        let instance: InstanceId = owner.parse().unwrap();
        let sealed = Sealer::new([7; 32]).seal(owner, "hunter2").unwrap();
        let image = "img_00000000000000000000000003";
        let history: DeploymentHistory = serde_json::from_value(serde_json::json!({
            "latest": [],
            "created": {
                "definition": {
                    "template_version": "1.0.0",
                    "service": {"role": "server", "imageId": image, "imageVersion": "1.0.0"},
                },
                "image": {"image_id": image, "name": "an-image", "version": "1.0.0"},
                "env": {"PASSWORD": sealed},
            },
        }))
        .unwrap();
        let key = DeploymentHistory::key(instance, DeploymentTarget::Backend);
        let change = Change::new().create::<DeploymentHistory>(&key, history);
        actix_rt::System::new().block_on(store.commit(change)).unwrap();

        let both = Sealer::with_older([8; 32], &[[7; 32]]);
        assert_eq!(reseal(&store, both.clone()), Ok(1));
        assert_eq!(reseal(&store, both), Ok(0));
        let found = store.get::<DeploymentHistory>(&key).unwrap().unwrap();
        let env = &found.created.as_ref().unwrap().env;
        let sealed = env.values().next().unwrap();
        assert_eq!(Sealer::new([8; 32]).open(owner, sealed).as_deref(), Ok("hunter2"));
        store.close();
    }
}
