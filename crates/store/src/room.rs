//! Room on the disk. sled cannot go on after a write for which the disk had no room, so the committer
//! asks before each batch, and refuses changes while there is too little. It goes on by itself when
//! there is room again.

use crate::StoreError;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Bytes that stay free: sled also writes on its own, when it tidies its log and at a start.
const LEAST: u64 = 32 << 20;
/// Bytes that a file keeps for the store. It is given up when somebody else has filled the disk, so
/// that the service can still write what removes things.
const RESERVE: u64 = 64 << 20;
/// The name of the reserve in the folder of the store.
const FILE: &str = "reserve";
/// How often the reserve is made again, if it is not there.
const MADE_AGAIN: Duration = Duration::from_secs(30);
/// The bytes that a batch may take on the disk, for each of its bytes: sled writes whole nodes.
const GROWTH: u64 = 8;

/// Whether the file that keeps room is there.
enum Reserve {
    There,
    /// When the service last tried to make it.
    Missing(Option<Instant>),
}

/// The room on the disk of one store.
pub(crate) struct Room {
    folder: PathBuf,
    reserve: Reserve,
}

impl Room {
    /// Makes the reserve in the folder of the store, if there is room for it.
    pub(crate) fn new(folder: &Path) -> Room {
        let is_there = folder.join(FILE).exists();
        let reserve = if is_there { Reserve::There } else { Reserve::Missing(None) };
        let mut room = Room { folder: folder.to_owned(), reserve };
        room.make_reserve();
        room
    }

    /// Refuses a batch of so many bytes if the disk has no room for it.
    pub(crate) fn check(&mut self, bytes: u64) -> Result<(), StoreError> {
        let needed = LEAST.saturating_add(bytes.saturating_mul(GROWTH));
        if self.free() >= needed {
            self.make_reserve();
            return Ok(());
        }
        if matches!(self.reserve, Reserve::There) {
            let _ = fs::remove_file(self.folder.join(FILE));
            self.reserve = Reserve::Missing(Some(Instant::now()));
            tracing::error!(disk = %self.folder.display(), "the disk is nearly full: the store uses its reserve; make room");
        }
        if self.free() >= needed { Ok(()) } else { Err(StoreError::NoRoom) }
    }

    /// Makes the reserve again, now and then.
    fn make_reserve(&mut self) {
        let Reserve::Missing(tried) = self.reserve else { return };
        if tried.is_some_and(|tried| tried.elapsed() < MADE_AGAIN) {
            return;
        }
        let path = self.folder.join(FILE);
        let room = self.free() >= RESERVE * 2 + LEAST;
        let made = room && File::create(&path).and_then(|file| allocate(&file)).is_ok();
        self.reserve = if made { Reserve::There } else { Reserve::Missing(Some(Instant::now())) };
        if room && !made {
            let _ = fs::remove_file(path);
        }
    }

    /// Free bytes that this process may use. A disk that does not tell has room.
    fn free(&self) -> u64 {
        free(&self.folder).unwrap_or(u64::MAX)
    }
}

/// Whether the disk says that a store in this folder has room to open and to go on.
pub(crate) fn is_there(folder: &Path) -> bool {
    free(folder).is_some_and(|free| free >= 2 * LEAST)
}

/// Free bytes that this process may use, if the disk tells.
fn free(folder: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(folder).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

fn allocate(file: &File) -> std::io::Result<()> {
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file, flags, 0, RESERVE).map_err(std::io::Error::from)
}
