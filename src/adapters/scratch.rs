//! Files that a process makes for its own work, and that nobody needs after it.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A file that is removed with the work that made it. It is gone already if the work came to its end.
pub struct WorkingCopy(pub PathBuf);

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        // What cannot be removed now, the next start removes.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes an empty folder. What an earlier process left in it is removed.
pub fn empty(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    std::fs::create_dir_all(folder)
}
