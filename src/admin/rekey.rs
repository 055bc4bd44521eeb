//! Encrypts every secret in the store with a new key.

use super::{dump::open, note};
use crate::{secrets, wiring::sealer};
use actors::{
    kinds::table::{self, Visitor},
    ports::{Random, sealed::Sealer},
    runtime::resource::{Kept, Resource},
};
use std::path::Path;
use store::{Change, Store};

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
    let mut records = Records { store, sealer: sealer(&keys)?, sealed: 0 };
    table::visit(&mut records)?;
    secrets::end_rekey(data, keys).map_err(at)?;
    Ok(records.sealed)
}

/// How many keys are read at a time.
const PAGE: usize = 500;

/// Seals the secrets in the records of one kind after the other.
struct Records<'a> {
    store: &'a Store,
    sealer: Sealer,
    sealed: usize,
}

impl Visitor for Records<'_> {
    type Error = String;

    fn visit<R: Resource>(&mut self) -> Result<(), String> {
        let text = |e: &dyn std::fmt::Display| format!("{}: {e}", R::TREE);
        let mut after: Option<R::Key> = None;
        loop {
            let keys = self.store.keys::<R>(after.as_ref(), PAGE).map_err(|e| text(&e))?;
            let Some(last) = keys.last().copied() else { return Ok(()) };
            for key in keys {
                self.reseal::<R>(key).map_err(|e| text(&e))?;
            }
            after = Some(last);
        }
    }
}

impl Records<'_> {
    fn reseal<R: Resource>(&mut self, key: R::Key) -> Result<(), String> {
        let found = self.store.get::<R>(&key).map_err(|e| e.to_string())?;
        let Some(before) = found else { return Ok(()) };
        let mut record = serde_json::to_value(&**before).map_err(|e| e.to_string())?;
        let count = self.sealer.reseal(&key.to_string(), &mut record).map_err(|e| e.to_string())?;
        if count == 0 {
            return Ok(());
        }
        let after: Kept<R> = serde_json::from_value(record).map_err(|e| e.to_string())?;
        let change = Change::new().replace::<R>(&key, Some(&before), after);
        actix_rt::System::new().block_on(self.store.commit(change)).map_err(|e| e.to_string())?;
        self.sealed += count;
        Ok(())
    }
}
