//! A bound on how much is under way: each piece of work holds a permit until it ends.

use std::{
    ops::Deref,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// So many permits. Taking and giving back one is a single atomic addition: no lock.
#[derive(Debug)]
pub struct Permits {
    taken: AtomicU64,
    limit: u64,
}

/// One of the permits, given back when it is dropped. `P` refers to all of them: `&Permits` while
/// they are borrowed, `Arc<Permits>` where the permit travels with a message.
#[derive(Debug)]
pub struct Permit<P: Deref<Target = Permits>>(P);

impl Permits {
    /// This many.
    pub const fn new(limit: u64) -> Self {
        Permits { taken: AtomicU64::new(0), limit }
    }

    /// How many there are.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// How many are taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

impl<P: Deref<Target = Permits>> Permit<P> {
    /// Takes a permit; `None` where all are taken.
    pub fn take(of: P) -> Option<Self> {
        let permit = Permit(of);
        let before = permit.0.taken.fetch_add(1, Relaxed);
        (before < permit.0.limit).then_some(permit)
    }
}

impl<P: Deref<Target = Permits>> Drop for Permit<P> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}
