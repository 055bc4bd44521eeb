//! Whether the container engine is there, and what it has that nobody knows of.

use container_engine::EngineError;
use contract::Timestamp;
use std::sync::{Mutex, PoisonError};

/// Whether the engine is there, as it was found last.
#[derive(Debug, Default)]
pub struct EngineHealth(Mutex<Found>);

/// What was found of the engine.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Everything was looked at once, or the engine was found to be away.
    pub looked: bool,
    /// Everything was looked at once: the records say where containers are.
    pub joined: bool,
    /// Since when it is away, and why.
    pub away: Option<(Timestamp, String)>,
    /// Containers of ours that no record knows.
    pub orphans: u64,
    /// How often an instance at rest was not as its record said, since the process started.
    pub drift: u64,
}

impl EngineHealth {
    fn change(&self, change: impl FnOnce(&mut Found)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What was found last.
    pub fn get(&self) -> Found {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it does not answer.
    pub fn is_away(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).away.is_some()
    }

    pub(super) fn lost(&self, why: &EngineError, now: Timestamp) {
        self.change(|found| {
            if found.away.is_none() {
                tracing::warn!(error = %why, "the container engine is away");
            }
            found.looked = true;
            let since = found.away.take().map_or(now, |(since, _)| since);
            found.away = Some((since, why.to_string()));
        });
    }

    pub(super) fn found(&self) {
        self.change(|found| {
            if found.away.take().is_some() {
                tracing::info!("the container engine is back");
            }
        });
    }

    pub(super) fn joined(&self) {
        self.change(|found| (found.looked, found.joined) = (true, true));
    }

    /// Whether the records say where containers are.
    pub fn has_joined(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).joined
    }

    pub(super) fn drifted(&self, count: u64) {
        self.change(|found| found.drift += count);
    }

    pub(super) fn orphans(&self, count: u64) {
        self.change(|found| found.orphans = count);
    }
}
