//! Renews the keys of a server, and encrypts every secret in the store with a new key.

use super::{Place, note};
use crate::{
    secrets::{self, Renewal},
    wiring::sealer,
};
use actix_rt::SystemRunner;
use actors::{
    installation::{Installation, This},
    ports::{random::Random, sealed::Sealer},
    records::{self, RecordVisitor},
    runtime::{resource::Resource, side_record::SideRecord},
};
use std::path::Path;
use store::{Change, Record, Store};

/// What ends with a signing key.
const SIGNED: &str = "made a new signing key: addresses for uploads and downloads that were given out are \
    void, the webhook of each repository needs its new secret (svc_getRepositoryWebhook) at the host, builds \
    that a runner has begun are given to a runner again, and a call from before that is repeated with its \
    request id happens again";

/// Makes new keys. Seals every secret with a new encryption key, and forgets the old one. An
/// interrupted run is continued: until the end, the key file has what the store may need.
pub fn rekey(place: &Place, renewal: Renewal) -> Result<(), String> {
    let (store, data) = (place.open()?, place.data.as_path());
    let done = renew(&store, data, renewal);
    store.close();
    let Renewed { sealed, signing_key } = done?;
    let file = secrets::keys_path(data).display().to_string();
    if let Some(sealed) = sealed {
        note(&format!("sealed {sealed} secrets with a new encryption key"));
    }
    if signing_key {
        note(SIGNED);
    }
    if renewal.master_key {
        note(&format!(
            "made a new master key, in {file}: whoever sends the old one is refused from the next start on"
        ));
    }
    note(&format!(
        "copy {file} to the place of your backups; a backup of the store from before needs the old file"
    ));
    Ok(())
}

/// The keys that were renewed, by this run or by an earlier one that it completed.
struct Renewed {
    /// How many secrets were sealed with a new encryption key.
    sealed: Option<usize>,
    signing_key: bool,
}

fn renew(store: &Store, data: &Path, renewal: Renewal) -> Result<Renewed, String> {
    let at = |e: std::io::Error| format!("{}: {e}", secrets::keys_path(data).display());
    let keys = secrets::begin_rekey(data, &Random::default(), renewal).map_err(at)?;
    let is_sealed_anew = !keys.older_encryption_keys.is_empty();
    let sealed = is_sealed_anew.then(|| reseal(store, sealer(&keys)?)).transpose()?;
    let renewed = Renewed { sealed, signing_key: keys.older_signing_key.is_some() };
    // Until the key file forgets the older keys, the server starts with both.
    know(store, keys.installation())?;
    secrets::end_rekey(data, keys).map_err(at)?;
    Ok(renewed)
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
    records::visit(&mut records)?;
    Ok(records.sealed)
}

/// Seals the secrets in the records of one kind after the other.
struct Records<'a> {
    store: &'a Store,
    sealer: Sealer,
    system: SystemRunner,
    sealed: usize,
}

impl RecordVisitor for Records<'_> {
    type Error = String;

    fn resource<R: Resource>(&mut self) -> Result<(), String> {
        self.every::<R>(ToString::to_string)
    }

    fn side_record<R: SideRecord>(&mut self) -> Result<(), String> {
        self.every::<R>(R::named_by)
    }
}

impl Records<'_> {
    /// Every record of a kind. `named_by` gives the object for which the record with a key seals, apart
    /// from those that its content names.
    fn every<R: Record>(&mut self, named_by: impl Fn(&R::Key) -> String) -> Result<(), String> {
        for key in self.store.whole::<R>(None).keys() {
            let key = key.map_err(|e| e.to_string())?;
            let done = self.one::<R>(&key, &named_by(&key));
            done.map_err(|e| format!("{} {key}: {e}", R::TREE))?;
        }
        Ok(())
    }

    fn one<R: Record>(&mut self, key: &R::Key, owner: &str) -> Result<(), String> {
        let found = self.store.get::<R>(key).map_err(|e| e.to_string())?;
        let Some(before) = found else { return Ok(()) };
        let mut record = serde_json::to_value(&**before).map_err(|e| e.to_string())?;
        let count = self.sealer.reseal(owner, &mut record).map_err(|e| e.to_string())?;
        if count == 0 {
            return Ok(());
        }
        // From text, because reading a record from a `Value` would be compiled once more for each kind.
        let after: R::Content =
            serde_json::from_slice(record.to_string().as_bytes()).map_err(|e| e.to_string())?;
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
    use actors::{kinds::hosting::instances::DeploymentHistory, records::trees};
    use contract::{InstanceId, deployments::DeploymentTarget};
    use store::Memory;

    /// A rollback to what the instance was created with needs these variables.
    #[test]
    fn the_variables_that_a_deployment_history_keeps_are_sealed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), &trees(), Memory::default()).unwrap();
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
        assert!(!records::has_secrets(&store).unwrap());
        actix_rt::System::new().block_on(store.commit(change)).unwrap();

        assert!(records::has_secrets(&store).unwrap());
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
