//! Rows in memory, for stores that end with the process.

use crate::{
    StoreError,
    rows::{Each, Order, Rows, Writes},
};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

#[derive(Default)]
pub(crate) struct MemoryRows(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl MemoryRows {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows for MemoryRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.read().get(key).cloned())
    }

    fn range(&self, keys: Range<Vec<u8>>, order: Order, each: Each<'_>) -> Result<(), StoreError> {
        let rows = self.read();
        let mut range = rows.range(keys);
        let next = || match order {
            Order::FirstKeyFirst => range.next(),
            Order::LastKeyFirst => range.next_back(),
        };
        for (key, value) in std::iter::from_fn(next) {
            if !each(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut rows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in writes {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn size(&self) -> u64 {
        0
    }
}
