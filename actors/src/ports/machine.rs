//! The machine that the service runs on.

use contract::{Fault, operators::DiskUsage};

/// The machine that the service runs on.
pub trait Machine: Send + Sync {
    /// The disk of the data directory. `None` if the system does not tell.
    fn disk(&self) -> Option<DiskUsage>;

    /// Refuses work that brings so many bytes while the disk is nearly full. What is left is for the
    /// store, so that the service can still write what is small, such as a deletion.
    fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        match self.disk() {
            Some(disk) if !has_room(disk, bytes) => Err(Fault::NoRoom),
            _ => Ok(()),
        }
    }
}

/// Whether the disk keeps a twentieth free, at least 128 MiB and at most 2 GiB, with so many bytes
/// more. A disk of less than 256 MiB keeps half.
pub(crate) fn has_room(disk: DiskUsage, bytes: u64) -> bool {
    let kept = (disk.bytes / 20).clamp(128 << 20, 2 << 30).min(disk.bytes / 2);
    disk.free_bytes.saturating_sub(bytes) >= kept
}
