//! Only one process opens a directory.

use crate::{StoreError, io};
use std::{fs::File, io::Write, path::Path};

/// Holds the directory for this process. The system frees it when the process ends or crashes.
pub(crate) struct Lock(#[allow(dead_code, reason = "the open file is the lock")] File);

impl Lock {
    pub(crate) fn take(directory: &Path) -> Result<Lock, StoreError> {
        let path = directory.join("lock");
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                let holder = holder.trim();
                let process =
                    if holder.is_empty() { String::new() } else { format!(" (process {holder})") };
                return Err(StoreError::InUse(format!(
                    "the store {} is in use by another svc{process}: stop that one first, or choose another data directory",
                    directory.display()
                )));
            }
            Err(std::fs::TryLockError::Error(e)) => return Err(io(e)),
        }
        file.set_len(0).map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Lock(file))
    }
}
