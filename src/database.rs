//! Opens the store of a service: a folder of its data directory, or a PostgreSQL database.

use crate::config::storage::DatabaseArgs;
use actors::records::trees;
use std::path::Path;
use store::{Memory, Nodes, Postgres, Store};

/// Opens the store. Makes one where there is none. Fails while a process uses it that does not share it.
pub fn open(data: &Path, database: &DatabaseArgs, nodes: Nodes) -> Result<Store, String> {
    let folder = data.join("store");
    let Some(postgres) = database.postgres()? else {
        return Store::open(&folder, &trees(), Memory::default()).map_err(|e| e.to_string());
    };
    let store = connect(data, &postgres, nodes)?;
    // An operator who names a database for the first time would see an empty service otherwise.
    if folder.exists() && store.is_empty().map_err(|e| e.to_string())? {
        return Err(format!(
            "the database is empty, and {} has a store: write that into a file with `svc admin backup` and without \
             SVC_STORE, read the file into the database with `svc admin restore`, and move the folder away",
            folder.display()
        ));
    }
    Ok(store)
}

/// Opens the store in a database, which may be empty. Its copy is in the data directory.
pub fn connect(data: &Path, postgres: &Postgres, nodes: Nodes) -> Result<Store, String> {
    Store::connect(postgres, nodes, &data.join("copy"), &trees(), Memory::default())
        .map_err(|e| e.to_string())
}

/// Opens a store that is there. Fails if there is nothing, and while a server uses it.
pub fn open_existing(data: &Path, database: &DatabaseArgs) -> Result<Store, String> {
    if !database.is_named() && !data.join("store").exists() {
        return Err(format!(
            "there is no store in {}; name the server's data directory with --data",
            data.display()
        ));
    }
    let store = open(data, database, Nodes::One)?;
    if store.is_empty().map_err(|e| e.to_string())? {
        return Err("there is nothing in the store; has the server been started?".into());
    }
    Ok(store)
}
