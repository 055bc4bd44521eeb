//! The folder of a build, and what killed runners left.

use super::user::User;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

const PREFIX: &str = "svc-build-";
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
const SOURCE: &str = "source";
/// A runner locks this file as long as it uses the folder.
const LOCK: &str = "lock";
/// How long a runner may take from the file to its lock.
const MADE_WITHIN: Duration = Duration::from_secs(10);

/// A new folder for one build. Dropping it removes everything in it.
pub struct WorkFolder {
    folder: TempDir,
    _lock: File,
}

impl WorkFolder {
    /// Makes the folder. What is in it belongs to `user`, if the build runs as another user.
    pub fn create(base: &Path, user: Option<&User>) -> io::Result<WorkFolder> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        for part in [HOME, TEMPORARY, SOURCE] {
            let part = folder.path().join(part);
            fs::create_dir(&part)?;
            if let Some(user) = user {
                user.give(&part)?;
            }
        }
        if user.is_some() {
            // The other user passes, and neither lists the folder nor writes into it.
            fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        }
        Ok(WorkFolder { folder, _lock: lock })
    }

    /// The working copy of the repository.
    pub fn source(&self) -> PathBuf {
        self.folder.path().join(SOURCE)
    }

    /// The home folder of the programs of the build.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join(HOME)
    }

    /// What ssh reads while the commit is fetched. The command of the build never finds it.
    pub fn ssh(&self) -> PathBuf {
        self.folder.path().join("ssh")
    }

    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join(TEMPORARY)
    }

    /// Removes the folders of runners that were killed.
    pub fn remove_leftovers(base: &Path) -> io::Result<()> {
        fs::create_dir_all(base)?;
        for entry in fs::read_dir(base)?.flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            if !is_ours || is_used(&entry.path().join(LOCK)) {
                continue;
            }
            // Another user of the machine may own it.
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(())
    }
}

/// Whether a runner holds the lock. Without the file, or without the lock at first, a folder is being
/// made.
fn is_used(lock: &Path) -> bool {
    // In a folder that all users share, the file may be a pipe, which is not waited for, or a link.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(lock, OFlags::RDONLY | flags, Mode::empty()).map(File::from);
    let Ok(file) = file else { return true };
    let age = file.metadata().and_then(|metadata| metadata.modified());
    let is_new = age.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < MADE_WITHIN));
    is_new || file.try_lock().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn only_the_folders_of_dead_runners_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let used = WorkFolder::create(base.path(), None).unwrap();
        let left = WorkFolder::create(base.path(), None).unwrap();
        let foreign = base.path().join("something");
        fs::create_dir(&foreign).unwrap();
        // As after a kill: the lock is gone, and the folder is there.
        let WorkFolder { folder, _lock } = left;
        let left = folder.keep();
        _lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        drop(_lock);
        WorkFolder::remove_leftovers(base.path()).unwrap();
        assert!(used.home().exists() && foreign.exists() && !left.exists());
    }
}
