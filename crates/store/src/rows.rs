//! The seam of the store: what it needs of the engine that keeps its rows. Everything above it, such as
//! versions, index entries, claims, the cache and the batches, is the same for every engine.

use crate::StoreError;
use std::{collections::HashMap, ops::Range};

/// Rows to set, and rows to remove (`None`), by their keys.
pub(crate) type Writes = HashMap<Vec<u8>, Option<Vec<u8>>>;

/// In which order a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    FirstKeyFirst,
    LastKeyFirst,
}

/// What looks at a row of a range. False: no more rows.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<bool, StoreError>;

/// An ordered map of rows. One thread writes, and many read.
///
/// A reader sees the rows of [`apply`](Rows::apply) together or not at all, except in a range that it is
/// reading.
pub(crate) trait Rows: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Reads the rows with these keys in order, until `each` has enough.
    fn range(&self, keys: Range<Vec<u8>>, order: Order, each: Each<'_>) -> Result<(), StoreError>;

    /// Writes all of these rows. After an error, a part of them may be visible.
    fn apply(&self, writes: Writes) -> Result<(), StoreError>;

    /// Returns when everything that was written is on the disk, and survives a loss of power.
    fn flush(&self) -> Result<(), StoreError>;

    /// Bytes on the disk; 0 if the engine cannot tell.
    fn size(&self) -> u64;
}
