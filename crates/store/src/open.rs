//! Opens sled, and checks the layout of its rows.

use crate::{StoreError, io, recovery};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The version of the layout. A directory with another version is refused.
pub(crate) const FORMAT: u32 = 3;
/// The version before, whose rows are the same. A program that knows only that one must not open a
/// store that newer programs have written.
pub(crate) const SAME_ROWS: u32 = 2;
/// How long another owner of sled's lock may take to end. The caller has the lock of the store, so
/// this is a thread of a store that was closed a moment ago.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Opens sled's folder. A panic of sled is a refusal, like its errors.
pub(crate) fn db(folder: &Path, cache: u64) -> Result<sled::Db, StoreError> {
    let begun = Instant::now();
    loop {
        let config = sled::Config::new().path(folder).cache_capacity(cache).flush_every_ms(None);
        let unreadable = |why: &str| recovery::damaged(folder, &format!("cannot be read ({why})"));
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(sled::Error::Io(e)))
                if e.to_string().contains("could not acquire lock")
                    && begun.elapsed() < LOCK_PATIENCE =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            Ok(Err(sled::Error::Io(e))) => {
                return Err(io(format!("{}: {e}; nothing is lost", folder.display())));
            }
            Ok(Err(e)) => return Err(unreadable(&e.to_string())),
            Err(panic) => {
                let why = panic.downcast_ref::<String>().map(String::as_str);
                let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
                return Err(unreadable(why.unwrap_or("a panic")));
            }
        }
    }
}

/// A new store gets the format; an existing store must have it.
pub(crate) fn check_format(db: &sled::Db) -> Result<(), StoreError> {
    let known = db.get("format").map_err(io)?;
    match known.and_then(|v| v.as_ref().try_into().ok().map(u32::from_be_bytes)) {
        Some(FORMAT) => Ok(()),
        None | Some(SAME_ROWS) => {
            db.insert("format", &FORMAT.to_be_bytes()).map(|_| ()).map_err(io)
        }
        Some(other) => Err(StoreError::Unreadable(format!(
            "the store has format {other}, this program knows format {FORMAT}: use the version that wrote it"
        ))),
    }
}
