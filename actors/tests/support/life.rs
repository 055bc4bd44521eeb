//! Lives of owners over one store, on real threads.

use std::{path::Path, time::Duration};
use store::{Memory, Store, StoreError};

/// Lets the threads of owners and of the store work.
#[allow(clippy::disallowed_methods, reason = "real threads are waited for")]
pub async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Opens the store when the life before has released it.
pub async fn open(folder: &Path) -> Store {
    for _ in 0..10_000 {
        match Store::open(folder, &actors::records::trees(), Memory::default()) {
            Err(StoreError::InUse(_)) => a_moment().await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the store is never let go of");
}
