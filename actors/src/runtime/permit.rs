//! Permits bound the work under way. Each piece of work holds a permit until it ends.

use std::{
    ops::Deref,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A number of permits. To take or return one is a single atomic operation, without a lock.
#[derive(Debug)]
pub struct Permits {
    taken: AtomicU64,
    limit: u64,
}

/// A permit, returned when it is dropped. `P` is a reference to its [`Permits`]: `&Permits`, or
/// `Arc<Permits>` if the permit travels with a message.
#[derive(Debug)]
pub struct Permit<P: Deref<Target = Permits>>(P);

impl Permits {
    pub const fn new(limit: u64) -> Self {
        Permits { taken: AtomicU64::new(0), limit }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

impl<P: Deref<Target = Permits>> Permit<P> {
    /// Takes a permit. `None`: all permits are taken.
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
