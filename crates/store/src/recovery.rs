//! What is checked and mended before sled opens its folder.
//!
//! sled 0.34.7 refuses some leftovers of an interrupted start although every row is in its log, and
//! it opens others and silently drops rows. The rules here follow its sources:
//!
//! - **Snapshots** (`snap.` and the position in the log, in hex) only make a start faster
//!   (`pagecache/snapshot.rs`). sled writes one at each start, first as `snap.….generating`, and
//!   refuses to open if the last one is not whole. Any of them can be deleted: the log has all rows.
//! - **`conf`** holds constants. It is written again if it is missing, but a part of it is refused
//!   (`config.rs`).
//! - **Blobs** (`blobs/` and a position in the log) are the nodes that are too large for the log
//!   (`pagecache/blob_io.rs`). If one cannot be read, sled takes its place in the log for the end of
//!   the log. That is right for a blob that was being written when the process or the machine
//!   stopped: nothing after it was acknowledged. It loses data if an acknowledged change needs the
//!   blob. [`seal`] marks those: it makes them read-only before the change is acknowledged.

use crate::{StoreError, io};
use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The mode of a blob that an acknowledged change needs.
const SEALED: u32 = 0o400;
/// An empty file beside sled's folder: the store was opened before, so it has a log.
const MARK: &str = "opened";
/// An empty file beside sled's folder: the rows are a copy, which may be thrown away.
const COPY: &str = "copy";
/// The length of the checksum at the end of `conf` and of a snapshot.
const CHECKSUM: usize = 4;
/// The shortest `conf` that sled reads; it writes a shorter one again.
const SHORTEST_CONF: usize = 9;

/// Removes the copy of an earlier start. Refuses a folder whose rows are no copy.
///
/// The caller holds the lock of the store.
pub(crate) fn clear(store: &Path) -> Result<(), StoreError> {
    let (folder, mark) = (store.join("sled"), store.join(COPY));
    if folder.exists() && !mark.exists() {
        return Err(StoreError::InUse(format!(
            "{} holds a store, and no copy of a database: choose another folder",
            store.display()
        )));
    }
    fs::write(&mark, "").map_err(at(&mark))?;
    let opened = store.join(MARK);
    for removed in [fs::remove_file(&opened), fs::remove_dir_all(&folder)] {
        match removed {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
    }
    Ok(())
}

/// Removes what an interrupted start left in sled's folder and what sled can do without. Refuses a
/// folder from which sled would silently drop acknowledged changes.
///
/// The caller holds the lock of the store. A store that does not exist yet is fine.
pub(crate) fn mend(store: &Path) -> Result<(), StoreError> {
    let folder = &store.join("sled");
    let log = folder.join("db");
    if store.join(MARK).exists() && fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
        return Err(damaged(&log, "is missing or empty"));
    }
    let Some(entries) = names(folder)? else { return Ok(()) };
    let mut mended = false;
    for entry in entries {
        let path = folder.join(&entry);
        let useless = match entry.to_str() {
            Some("conf") => !is_whole_conf(&fs::read(&path).map_err(at(&path))?),
            Some(name) if name.starts_with("snap.") => {
                !is_name_of_snapshot(name)
                    || !is_whole_snapshot(&fs::read(&path).map_err(at(&path))?)
            }
            _ => false,
        };
        if useless {
            tracing::warn!(file = %path.display(), "removing what an interrupted start left; the rows are in the log");
            fs::remove_file(&path).map_err(at(&path))?;
            mended = true;
        }
    }
    check_blobs(&folder.join("blobs"))?;
    if mended { sync_folder(folder) } else { Ok(()) }
}

/// Marks a blob as needed by an acknowledged change. The bytes are on the disk before the mark is,
/// so a marked blob that is not whole is damage.
pub(crate) fn seal(blob: &Path) -> std::io::Result<()> {
    let file = File::open(blob)?;
    if is_sealed(&file.metadata()?) {
        return Ok(());
    }
    file.sync_all()?;
    file.set_permissions(Permissions::from_mode(SEALED))?;
    file.sync_all()
}

/// Makes the files durable that sled makes at a start and does not sync, and their folders, and marks
/// the store as one that has a log.
pub(crate) fn make_durable(store: &Path) -> Result<(), StoreError> {
    let folder = store.join("sled");
    let conf = folder.join("conf");
    File::open(&conf).and_then(|conf| conf.sync_all()).map_err(at(&conf))?;
    for folder in [&folder.join("blobs"), &folder] {
        sync_folder(folder)?;
    }
    let mark = store.join(MARK);
    if !mark.exists() {
        File::create(&mark).and_then(|mark| mark.sync_all()).map_err(at(&mark))?;
    }
    sync_folder(store)?;
    store.parent().filter(|above| !above.as_os_str().is_empty()).map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder))
}

/// The refusal of a store that sled would open with a loss, or not at all.
pub(crate) fn damaged(what: &Path, why: &str) -> StoreError {
    StoreError::Damaged(format!(
        "the store is damaged: {} {why}. The store is not opened, because acknowledged changes would \
         be missing. Keys, artifacts and dumps of databases lie elsewhere and are not affected. Put \
         the file back from a copy, or restore the newest backup into a new data directory: svc admin \
         restore FILE --data FOLDER",
        what.display()
    ))
}

/// The names in a folder, `None` if there is no folder.
fn names(folder: &Path) -> Result<Option<Vec<PathBuf>>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(at(folder)(e)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into()));
    names.collect::<std::io::Result<_>>().map(Some).map_err(at(folder))
}

fn check_blobs(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder)?.unwrap_or_default() {
        let path = folder.join(&name);
        // sled panics at a name that is no text.
        if name.to_str().is_none() {
            return Err(damaged(&path, "does not belong there; move it away"));
        }
        if name.to_str().is_some_and(is_name_of_blob) && is_torn(&path).map_err(at(&path))? {
            if is_sealed(&fs::metadata(&path).map_err(at(&path))?) {
                return Err(damaged(&path, "does not hold what was written to it"));
            }
            tracing::warn!(file = %path.display(), "a write was interrupted before it was acknowledged");
        }
    }
    Ok(())
}

fn is_sealed(blob: &fs::Metadata) -> bool {
    blob.permissions().mode() & 0o200 == 0
}

fn is_name_of_blob(name: &str) -> bool {
    name.parse::<i64>().is_ok()
}

fn is_name_of_snapshot(name: &str) -> bool {
    name.strip_prefix("snap.").is_some_and(|position| {
        position.len() == 16 && position.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// `conf`: constants, and the CRC-32 of them.
fn is_whole_conf(bytes: &[u8]) -> bool {
    bytes.len() < SHORTEST_CONF
        || bytes
            .split_last_chunk::<CHECKSUM>()
            .is_some_and(|(constants, sum)| crc32fast::hash(constants) == u32::from_le_bytes(*sum))
}

/// A snapshot: its content, the length of the content, and the CRC-32 of the content.
fn is_whole_snapshot(bytes: &[u8]) -> bool {
    let parts = bytes.split_last_chunk::<CHECKSUM>().and_then(|(rest, sum)| {
        let (content, _length) = rest.split_last_chunk::<8>()?;
        Some((content, u32::from_le_bytes(*sum)))
    });
    parts.is_some_and(|(content, sum)| !content.is_empty() && crc32fast::hash(content) == sum)
}

/// A blob: the CRC-32 of the rest, one byte for its kind, and its content.
fn is_torn(blob: &Path) -> std::io::Result<bool> {
    let mut file = File::open(blob)?;
    let mut sum = [0; CHECKSUM];
    match file.read_exact(&mut sum) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(true),
        read => read?,
    }
    let mut actual = crc32fast::Hasher::new();
    let mut part = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut part)?;
        match part.get(..read) {
            Some(read) if !read.is_empty() => actual.update(read),
            _ => return Ok(actual.finalize() != u32::from_le_bytes(sum)),
        }
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> StoreError {
    move |e| io(format!("{}: {e}", path.display()))
}
