//! The decoded records in memory. All kinds share one budget of bytes, so that no kind, and nobody who
//! makes many large records, takes more than that.

use crate::{Record, Stored};
use quick_cache::{
    Weighter,
    sync::{self, GuardResult},
};
use std::{any::Any, sync::Arc};

/// A record of any kind. The reader knows the kind and downcasts.
pub(crate) trait AnyRecord: Any + Send + Sync {
    /// See [`Stored::version`].
    fn version(&self) -> u64;
}

impl<R: Record> AnyRecord for Stored<R> {
    fn version(&self) -> u64 {
        Stored::version(self)
    }
}

/// A decoded record, and how many bytes it has in the store.
#[derive(Clone)]
pub(crate) struct Cached {
    pub(crate) record: Arc<dyn AnyRecord>,
    pub(crate) bytes: usize,
}

/// Records under the keys of their rows.
pub(crate) struct Cache {
    records: sync::Cache<Vec<u8>, Cached, Estimate>,
    /// The heaviest record that is kept, so that no record drives out many.
    heaviest: u64,
}

/// The bytes that the allocator, the cache and the record itself need beside its texts.
const LEAST: u64 = 512;

impl Cache {
    /// A cache that holds records of so many bytes.
    pub(crate) fn new(bytes: u64) -> Cache {
        let count = usize::try_from(bytes / LEAST).unwrap_or(usize::MAX);
        let records = sync::Cache::with_weighter(count, bytes, Estimate);
        Cache { records, heaviest: (bytes / 512).max(LEAST * 4) }
    }

    pub(crate) fn peek(&self, row: &[u8]) -> Option<Cached> {
        self.records.peek(row)
    }

    /// The record under the key. If it is not there, `read` gets it, and it is kept unless a writer
    /// comes in between: what was read before a change does not enter the cache after it.
    pub(crate) fn get_or<E>(
        &self,
        row: &[u8],
        read: impl FnOnce() -> Result<Option<Cached>, E>,
    ) -> Result<Option<Cached>, E> {
        match self.records.get_value_or_guard(row, None) {
            GuardResult::Value(cached) => Ok(Some(cached)),
            GuardResult::Timeout => read(),
            GuardResult::Guard(guard) => {
                let found = read()?;
                if let Some(cached) = found.as_ref().filter(|cached| self.keeps(row, cached)) {
                    let _ = guard.insert(cached.clone());
                }
                Ok(found)
            }
        }
    }

    /// Keeps what a writer wrote, or forgets what was there. Both void the guards of readers that
    /// are about to keep what they read before.
    pub(crate) fn put(&self, row: Vec<u8>, written: Option<Cached>) {
        match written.filter(|cached| self.keeps(&row, cached)) {
            Some(cached) => self.records.insert(row, cached),
            None => drop(self.records.remove(row.as_slice())),
        }
    }

    fn keeps(&self, row: &[u8], cached: &Cached) -> bool {
        weight(row, cached) <= self.heaviest
    }
}

/// Estimates the memory of a decoded record: twice its bytes in the store, because texts, lists and
/// maps have room to grow, and what every record needs.
fn weight(row: &[u8], cached: &Cached) -> u64 {
    let bytes = cached.bytes.saturating_mul(2).saturating_add(row.len());
    u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(LEAST)
}

#[derive(Clone)]
struct Estimate;

impl Weighter<Vec<u8>, Cached> for Estimate {
    fn weight(&self, row: &Vec<u8>, cached: &Cached) -> u64 {
        weight(row, cached)
    }
}
