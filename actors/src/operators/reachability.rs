//! Whether other machines reach this installation. The settings say so, or a request that a proxy
//! forwarded: a proxy on the same machine makes a service reachable that listens on loopback only.

use crate::{
    runtime::{
        side_record::{End, SideRecord},
        store::Store,
    },
    world::World,
};
use contract::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};
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
    pub fn read(store: &Store) -> Result<Self, contract::Fault> {
        let seen = store.get::<ForwardedRequest>(&FIRST.to_owned())?.is_some();
        Ok(Forwarded { seen: seen.into(), kept: seen.into() })
    }

    pub fn is_seen(&self) -> bool {
        self.seen.load(Relaxed)
    }
}

impl World {
    /// Whether programs of users, such as repositories and Dockerfiles, are built here. Builds are not
    /// isolated from this machine, so they are not where others reach it, unless the operator says so.
    pub fn builds_repositories(&self) -> bool {
        let site = &self.ports.site;
        site.trusts_builds || !(site.is_reachable || self.forwarded.is_seen())
    }

    /// A proxy forwarded a request.
    pub fn saw_forwarded_request(self: &Arc<Self>) {
        if !self.forwarded.seen.swap(true, Relaxed) && !self.ports.site.is_reachable {
            tracing::warn!(
                "a proxy forwarded a request, so this service counts as reachable from other machines; builds of users' programs are refused unless SVC_TRUST_BUILDS=true"
            );
        }
        if self.forwarded.kept.swap(true, Relaxed) {
            return;
        }
        let world = self.clone();
        actix_rt::spawn(async move {
            let first = ForwardedRequest { at: world.ports.clock.now() };
            let change = Change::new().create::<ForwardedRequest>(&FIRST.to_owned(), first);
            if let Err(fault) = world.store.commit(change).await {
                tracing::warn!(error = %fault, "it was not written that a proxy forwards requests");
                // The next such request tries again.
                world.forwarded.kept.store(false, Relaxed);
            }
        });
    }
}
