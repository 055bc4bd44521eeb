//! A small disk, which can be full. It is a file system in memory, which only root can mount.

use super::requires;
use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A disk, which ends with this value.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts a disk of so many KiB at this folder. `None`: it cannot be mounted here, and this test is left out.
    pub fn at(folder: &Path, size: u32, test: &str) -> Option<Disk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}k"), "tmpfs"]).arg(folder);
        if !mount.status().is_ok_and(|status| status.success()) {
            requires::left_out(test, "no disk can be mounted");
            return None;
        }
        Some(Disk { folder: folder.to_owned() })
    }

    /// Writes until no byte is left, until [`free`](Disk::free).
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.taken()).unwrap();
        while file.write_all(&[7; 1 << 16]).is_ok() {}
    }

    /// Gives back what was taken.
    pub fn free(&self) {
        std::fs::remove_file(self.taken()).unwrap();
    }

    fn taken(&self) -> PathBuf {
        self.folder.join("somebody-else")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Who still uses it has it until then.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).output();
    }
}
