//! Backup and restore of the store. Keys and artifacts are files: any tool can copy them.

use super::note;
use crate::secrets;
use actors::records::trees;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use std::{
    fs::File,
    io::{BufReader, BufWriter, Write},
    path::Path,
};
use store::{Memory, Store};

/// Writes the store into one compressed file.
pub fn backup(file: &Path, data: &Path) -> Result<(), String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let store = open(data)?;
    let partial = file.with_extension("partial");
    if file.exists() {
        return Err(at(&"is there already; choose another name"));
    }
    let out = File::create(&partial).map_err(|e| at(&e))?;
    let mut gzip = GzEncoder::new(BufWriter::new(out), Compression::fast());
    let rows = store.dump(&mut gzip).map_err(|e| e.to_string())?;
    let mut out = gzip.finish().map_err(|e| at(&e))?;
    out.flush().map_err(|e| at(&e))?;
    out.get_ref().sync_all().map_err(|e| at(&e))?;
    std::fs::rename(&partial, file).map_err(|e| at(&e))?;
    store.close();
    note(&format!("wrote {rows} rows to {}", file.display()));
    note(&format!(
        "keep {} with it: sessions of clients and addresses of uploads depend on the keys",
        secrets::keys_path(data).display()
    ));
    let [artifacts, backups] = ["artifacts", "backups"].map(|folder| data.join(folder));
    note(&format!(
        "the bytes of artifacts lie in {}, and the backups of instances in {}; copy them too",
        artifacts.display(),
        backups.display()
    ));
    Ok(())
}

/// Reads a backup into a new store.
pub fn restore(file: &Path, data: &Path) -> Result<(), String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let input = File::open(file).map_err(|e| at(&e))?;
    let target = data.join("store");
    if target.exists() {
        return Err(format!(
            "{} is there already; restore into a new data directory",
            target.display()
        ));
    }
    // The store appears only when it is complete: an interrupted restore leaves none behind.
    let partial = data.join("store.partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(|e| at(&e))?;
    }
    let store = Store::open(&partial, &trees(), Memory::default()).map_err(|e| e.to_string())?;
    let rows = store
        .load(&mut BufReader::new(GzDecoder::new(BufReader::new(input))))
        .map_err(|e| e.to_string())?;
    store.close();
    drop(store);
    std::fs::rename(&partial, &target).map_err(|e| at(&e))?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(|e| at(&e))?;
    note(&format!("restored {rows} rows into {}", target.display()));
    Ok(())
}

/// Opens the store of a data directory. Fails if it has none, and while a server uses it.
pub fn open(data: &Path) -> Result<Store, String> {
    if !data.join("store").exists() {
        return Err(format!(
            "there is no store in {}; name the server's data directory with --data",
            data.display()
        ));
    }
    Store::open(&data.join("store"), &trees(), Memory::default()).map_err(|e| e.to_string())
}
