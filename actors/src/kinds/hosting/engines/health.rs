//! The health of the container engine, as the instance reconciler last found it.

use crate::ports::machine::check_room;
use container_engine::{About, EngineError};
use contract::{Fault, Timestamp, operators::DiskUsage};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug)]
pub struct EngineHealth {
    status: Mutex<EngineStatus>,
    /// After so many looks in a row that found no engine, it counts as unreachable.
    looks: u32,
    /// Told when the engine is back and nobody has observed its containers yet.
    is_back: Notify,
}

/// Whether instances are kept from what they may not reach. The worst is the greatest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Egress {
    /// They are, or need not be.
    Restricted,
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// They are not, because of this.
    Open(String),
}

#[derive(Debug, Clone, Default)]
pub struct EngineStatus {
    /// Whether the first round has ended or found the engine unreachable.
    pub checked: bool,
    /// Whether a round has observed all containers since the start, and since the engine came back. Only then
    /// are the ports in the records right: an engine that starts gives them anew.
    pub observed_all: bool,
    /// Whether the engine told of its events, and does so no longer. Until it is back, nothing starts there, so
    /// the ports are right still.
    pub lost: bool,
    /// How often the engine came back.
    pub returns: u64,
    /// How many looks in a row found no engine, and since when.
    missed: Option<Missed>,
    /// When the engine became unreachable, and the last error.
    pub unreachable: Option<(Timestamp, String)>,
    pub egress: Egress,
    /// Containers with our label that no record names.
    pub orphans: u64,
    /// What the engine last said about itself and its machine.
    pub about: Option<About>,
    /// The disk of the engine's machine that has the volumes of instances, as measured last.
    pub disk: Option<DiskUsage>,
    /// How many times an instance differed from its record since the start.
    pub drift: u64,
}

impl EngineStatus {
    /// The worst of two engines, and the sums of what was counted there.
    pub(super) fn and(self, other: EngineStatus) -> EngineStatus {
        let since = |status: &EngineStatus| status.unreachable.as_ref().map(|(since, _)| *since);
        let first = match (since(&self), since(&other)) {
            (Some(one), Some(two)) if two < one => other.unreachable,
            (None, _) => other.unreachable,
            _ => self.unreachable,
        };
        EngineStatus {
            observed_all: self.observed_all && other.observed_all,
            unreachable: first,
            egress: self.egress.max(other.egress),
            orphans: self.orphans + other.orphans,
            drift: self.drift + other.drift,
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Missed {
    looks: u32,
    since: Timestamp,
}

impl Default for EngineHealth {
    /// That of an engine of this machine: what does not answer is not there.
    fn default() -> EngineHealth {
        EngineHealth { status: Mutex::default(), looks: 1, is_back: Notify::new() }
    }
}

impl EngineHealth {
    /// That of an engine of another machine: the network between may lose an answer.
    pub fn of_other_machine() -> EngineHealth {
        EngineHealth { looks: 3, ..EngineHealth::default() }
    }

    fn lock(&self) -> MutexGuard<'_, EngineStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self) -> EngineStatus {
        self.lock().clone()
    }

    pub fn is_unreachable(&self) -> bool {
        self.lock().unreachable.is_some()
    }

    pub fn has_observed_all(&self) -> bool {
        self.lock().observed_all
    }

    pub(crate) fn set_unreachable(&self, why: &EngineError, now: Timestamp) {
        let mut status = self.lock();
        status.checked = true;
        let missed = status.missed.get_or_insert(Missed { looks: 0, since: now });
        missed.looks = missed.looks.saturating_add(1);
        let Missed { looks, since } = *missed;
        if looks < self.looks {
            return;
        }
        if status.unreachable.is_none() {
            tracing::warn!(error = %why, "a container engine is unreachable");
        }
        status.unreachable = Some((since, why.to_string()));
    }

    /// The engine tells of its events no longer. Where this process is not alone, another one may start containers
    /// meanwhile, and give their ports to others.
    pub(crate) fn set_lost(&self, is_alone: bool) {
        let mut status = self.lock();
        status.lost = true;
        status.observed_all &= is_alone;
    }

    /// A container is about to be started, or the engine tells of its events. If it was lost, it is back: until
    /// all containers are observed again, no request goes to one.
    pub(crate) fn set_back(&self) {
        let mut status = self.lock();
        if std::mem::take(&mut status.lost) {
            status.observed_all = false;
            status.returns += 1;
            self.is_back.notify_one();
        }
    }

    /// Returns when the containers should be observed at once.
    pub(crate) async fn should_be_observed(&self) {
        self.is_back.notified().await;
    }

    pub(crate) fn set_about(&self, about: About) {
        self.lock().about = Some(about);
    }

    pub(crate) fn set_disk(&self, disk: Option<DiskUsage>) {
        self.lock().disk = disk;
    }

    /// Refuses work that brings so many bytes while the disk of the engine's machine is nearly full.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        check_room(self.lock().disk, bytes)
    }

    pub(crate) fn set_reachable(&self) {
        let mut status = self.lock();
        status.missed = None;
        if status.unreachable.take().is_some() {
            tracing::info!("a container engine answers again");
        }
    }

    pub(crate) fn set_egress(&self, raised: Result<(), EngineError>) {
        let mut status = self.lock();
        let egress = match raised {
            Ok(()) => Egress::Restricted,
            // Whatever was so before is so still.
            Err(EngineError::Unreachable(why)) => {
                if status.unreachable.is_none() {
                    tracing::warn!(error = why, "the walls around instances are not raised yet");
                }
                return;
            }
            Err(why) => Egress::Open(why.to_string()),
        };
        if egress != status.egress {
            match &egress {
                Egress::Open(why) => {
                    tracing::error!(error = why, "what instances reach is not restricted");
                }
                _ => tracing::info!("what instances reach is as the settings say"),
            }
        }
        status.egress = egress;
    }

    /// A round has observed all containers, and told every instance what it has to know. What it saw counts only
    /// if the engine has not come back since (`returns`).
    pub(crate) fn set_observed_all(&self, returns: u64) {
        let mut status = self.lock();
        status.checked = true;
        status.observed_all |= status.returns == returns;
    }

    pub(crate) fn count_drift(&self, drifted: u64) {
        self.lock().drift += drifted;
    }

    pub(crate) fn set_orphans(&self, count: u64) {
        self.lock().orphans = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_of_another_machine_is_looked_at_three_times() {
        let (health, at) = (EngineHealth::of_other_machine(), Timestamp::from_millis);
        let silent = EngineError::Unreachable("nothing came".into());
        for second in [1, 2, 3] {
            assert!(!health.is_unreachable());
            health.set_unreachable(&silent, at(second));
        }
        assert_eq!(health.status().unreachable, Some((at(1), silent.to_string())));
        health.set_reachable();
        health.set_unreachable(&silent, at(9));
        assert!(!health.is_unreachable());
        let own = EngineHealth::default();
        own.set_unreachable(&silent, at(1));
        assert!(own.is_unreachable());
    }

    #[test]
    fn what_was_seen_before_the_engine_came_back_does_not_count() {
        let health = EngineHealth::default();
        let before = health.status().returns;
        health.set_observed_all(before);
        health.set_lost(true);
        assert!(health.has_observed_all(), "nothing starts while it is away");
        health.set_back();
        assert!(!health.has_observed_all());
        health.set_observed_all(before);
        assert!(!health.has_observed_all(), "that round began too early");
        health.set_observed_all(health.status().returns);
        health.set_back();
        assert!(health.has_observed_all(), "it was not lost again");
    }
}
