//! The machine that the service runs on.

use contract::{Fault, operators::DiskUsage};
use std::io;

/// The machine that the service runs on.
pub trait Machine: Send + Sync {
    /// What operators call it.
    fn name(&self) -> String;

    /// The disk of the data directory. `None` if the system does not tell.
    fn disk(&self) -> Option<DiskUsage>;

    /// Refuses work that brings so many bytes while the disk is nearly full. What is left is for the
    /// store, so that the service can still write what is small, such as a deletion.
    fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        check_room(self.disk(), bytes)
    }
}

/// Refuses work that brings so many bytes while this disk is nearly full.
pub(crate) fn check_room(disk: Option<DiskUsage>, bytes: u64) -> Result<(), Fault> {
    match disk {
        Some(disk) if !has_room(disk, bytes) => Err(Fault::NoRoom),
        _ => Ok(()),
    }
}

/// After so many bytes of a file that grows, it is looked whether the disk has room for more.
const LOOKS_EVERY: u64 = 8 << 20;

/// A file that grows while the disk has room.
pub struct Growing {
    looked_at: u64,
}

impl Growing {
    /// A file of this size.
    pub fn from(size: u64) -> Self {
        Growing { looked_at: size }
    }

    /// Refuses the file of this size ([`StorageFull`](io::ErrorKind::StorageFull)) while the disk is nearly
    /// full.
    pub fn check(&mut self, size: u64, machine: &dyn Machine) -> io::Result<()> {
        if size - self.looked_at >= LOOKS_EVERY {
            machine.check_room(0).map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
            self.looked_at = size;
        }
        Ok(())
    }
}

/// Whether the disk keeps a twentieth free, at least 128 MiB and at most 2 GiB, with so many bytes
/// more. A disk of less than 256 MiB keeps half.
fn has_room(disk: DiskUsage, bytes: u64) -> bool {
    let kept = (disk.bytes / 20).clamp(128 << 20, 2 << 30).min(disk.bytes / 2);
    disk.free_bytes.saturating_sub(bytes) >= kept
}
