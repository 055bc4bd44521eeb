//! Whether other machines reach this installation. The settings say so, or a request that a proxy
//! forwarded: a proxy on the same machine makes a service reachable that listens on loopback only.

use crate::runtime::{
    side_record::{End, SideRecord},
    store::Store,
};
use contract::{Fault, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use store::Change;

/// The first request that a proxy forwarded. The record stays, so a restart forgets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ForwardedRequest {
    pub at: Timestamp,
}

impl SideRecord for ForwardedRequest {
    fn end(&self) -> End {
        End::Never
    }
}

/// The key of the only record.
const FIRST: &str = "first";

/// Whether a proxy ever forwarded a request.
#[derive(Debug, Default)]
pub struct Forwarded {
    seen: AtomicBool,
    /// The record is written, or is being written.
    kept: AtomicBool,
}

impl Forwarded {
    /// What earlier processes saw.
    pub fn read(store: &Store) -> Result<Self, Fault> {
        let seen = store.get::<ForwardedRequest>(&FIRST.to_owned())?.is_some();
        Ok(Forwarded { seen: seen.into(), kept: seen.into() })
    }

    pub fn is_seen(&self) -> bool {
        self.seen.load(Relaxed)
    }

    /// A proxy forwarded a request. Returns whether it is the first one of this process.
    pub fn see(&self) -> bool {
        !self.seen.swap(true, Relaxed)
    }

    /// Writes that a proxy forwards requests, unless that is written. After a failure, the next call
    /// tries again.
    pub async fn keep(&self, store: &Store, at: Timestamp) -> Result<(), Fault> {
        if self.kept.swap(true, Relaxed) {
            return Ok(());
        }
        let first = ForwardedRequest { at };
        let change = Change::new().create::<ForwardedRequest>(&FIRST.to_owned(), first);
        let done = store.commit(change).await;
        self.kept.store(done.is_ok(), Relaxed);
        done
    }

    /// Whether it is written that a proxy forwards requests, or is being written.
    pub fn is_kept(&self) -> bool {
        self.kept.load(Relaxed)
    }
}
