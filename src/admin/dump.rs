//! Backup and restore of the store. Keys and artifacts are files: any tool can copy them.

use super::{Place, note};
use crate::{database, secrets};
use actors::records::trees;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
};
use store::{Memory, Nodes, Postgres, Store};

/// Writes the store into one compressed file.
pub fn backup(file: &Path, place: &Place) -> Result<(), String> {
    let data = place.data.as_path();
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let store = place.open()?;
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
pub fn restore(file: &Path, place: &Place) -> Result<(), String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let mut input =
        BufReader::new(GzDecoder::new(BufReader::new(File::open(file).map_err(|e| at(&e))?)));
    let (rows, target) = match place.database.postgres()? {
        Some(postgres) => {
            (into_database(&mut input, &place.data, &postgres)?, "the database".to_owned())
        }
        None => {
            (into_folder(&mut input, &place.data)?, place.data.join("store").display().to_string())
        }
    };
    note(&format!("restored {rows} rows into {target}"));
    Ok(())
}

/// Fills an empty database. An interrupted restore leaves it empty.
fn into_database(
    input: &mut (impl BufRead + Send),
    data: &Path,
    postgres: &Postgres,
) -> Result<u64, String> {
    let store = database::connect(data, postgres, Nodes::One)?;
    let rows = store.load(input).map_err(|e| e.to_string());
    store.close();
    rows
}

/// Makes a store in a data directory. It appears only when it is complete: an interrupted restore leaves none
/// behind.
fn into_folder(input: &mut (impl BufRead + Send), data: &Path) -> Result<u64, String> {
    let (target, partial) = (data.join("store"), data.join("store.partial"));
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", target.display());
    if target.exists() {
        return Err(at(&"is there already; restore into a new data directory"));
    }
    if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(|e| at(&e))?;
    }
    let store = Store::open(&partial, &trees(), Memory::default()).map_err(|e| e.to_string())?;
    let rows = store.load(input).map_err(|e| e.to_string())?;
    store.close();
    drop(store);
    std::fs::rename(&partial, &target).map_err(|e| at(&e))?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(|e| at(&e))?;
    Ok(rows)
}
