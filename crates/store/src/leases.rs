//! Who acts. Each id belongs to a shard, and of the processes that share a store, one at a time holds the lease
//! of a shard: only it performs what the records of these ids ask for.

use rustix::time::{ClockId, clock_gettime};
use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::watch;

/// How many shards there are. The database has a row for each.
const SHARDS: u32 = 256;

/// A part of all ids, and of the names of what is done by one process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(i16);

impl Shard {
    /// The shard of the text of an id, or of a name.
    fn of(text: &str) -> Shard {
        // Below 256, so it fits.
        Shard((crc32fast::hash(text.as_bytes()) % SHARDS) as i16)
    }

    pub(crate) fn numbered(number: i16) -> Shard {
        Shard(number)
    }

    pub(crate) fn number(self) -> i16 {
        self.0
    }
}

/// The right to act for a shard, as long as no other process has it. It is compared when a change
/// [under](crate::Change::under) it is written, so what comes too late is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub(crate) shard: Shard,
    /// Rises whenever the shard changes hands.
    pub(crate) epoch: i64,
}

impl Lease {
    /// What it is for.
    pub fn shard(self) -> Shard {
        self.shard
    }

    /// Whether other processes may get it.
    pub fn is_shared(self) -> bool {
        self.epoch > 0
    }
}

/// The leases that this process holds.
pub(crate) enum Leases {
    /// No other process shares the store, so this one holds all of them.
    All,
    Some(RwLock<Held>, watch::Sender<u64>),
}

#[derive(Default)]
pub(crate) struct Held {
    epochs: BTreeMap<Shard, i64>,
    /// When they end, unless the database says before that this process lives.
    until: Duration,
}

impl Leases {
    /// None, until the database gives some.
    pub(crate) fn none() -> Leases {
        Leases::Some(RwLock::default(), watch::Sender::default())
    }

    /// Whether no other process can get any.
    pub(crate) fn are_all(&self) -> bool {
        matches!(self, Leases::All)
    }

    /// The lease for an id or a name, if this process holds it now.
    pub(crate) fn lease(&self, id: &(impl Display + ?Sized)) -> Option<Lease> {
        // Of those who are alone, all have the same one: to make the text of each id would take longer.
        let shard = if self.are_all() { Shard(0) } else { Shard::of(&id.to_string()) };
        self.of(shard)
    }

    /// The lease of a shard, if this process holds it now.
    fn of(&self, shard: Shard) -> Option<Lease> {
        match self {
            Leases::All => Some(Lease { shard, epoch: 0 }),
            Leases::Some(held, _) => {
                let held = held.read().unwrap_or_else(PoisonError::into_inner);
                let epoch = held.epochs.get(&shard).filter(|_| now() < held.until)?;
                Some(Lease { shard, epoch: *epoch })
            }
        }
    }

    /// All that are held now, and that other processes may get.
    pub(crate) fn all(&self) -> Vec<Lease> {
        self.epochs().into_keys().filter_map(|shard| self.of(shard)).collect()
    }

    /// All that are held, whether their time is over or not.
    pub(crate) fn epochs(&self) -> BTreeMap<Shard, i64> {
        match self {
            Leases::All => BTreeMap::new(),
            Leases::Some(held, _) => {
                held.read().unwrap_or_else(PoisonError::into_inner).epochs.clone()
            }
        }
    }

    /// Whether this process still holds this lease, in this epoch.
    pub(crate) fn has(&self, lease: Lease) -> bool {
        self.of(lease.shard) == Some(lease)
    }

    /// Takes over what the database says: these leases are held until `until`.
    pub(crate) fn hold(&self, epochs: BTreeMap<Shard, i64>, until: Duration) {
        let Leases::Some(held, changes) = self else { return };
        let mut held = held.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = held.epochs != epochs || held.until <= now();
        *held = Held { epochs, until };
        drop(held);
        if is_news {
            changes.send_modify(|count| *count += 1);
        }
    }

    /// Stops acting for these shards, which another process may have or will get.
    pub(crate) fn lose(&self, shards: impl IntoIterator<Item = Shard>) {
        let Leases::Some(held, changes) = self else { return };
        let mut held = held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.epochs.len();
        for shard in shards {
            held.epochs.remove(&shard);
        }
        let is_news = held.epochs.len() != before;
        drop(held);
        if is_news {
            changes.send_modify(|count| *count += 1);
        }
    }

    /// Wakes whoever acts when leases were got or lost.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        match self {
            Leases::All => watch::channel(0).1,
            Leases::Some(_, changes) => changes.subscribe(),
        }
    }
}

/// The time since the machine started, which also goes on while the machine sleeps, and never jumps.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // Neither is negative.
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_time_or_when_the_shard_changes_hands() {
        let leases = Leases::none();
        let (shard, second) = (Shard::of("a"), Shard::of("b"));
        assert_eq!(leases.of(shard), None);
        let mut changes = leases.changes();
        let soon = || now() + Duration::from_secs(60);
        leases.hold([(shard, 3), (second, 1)].into(), soon());
        let lease = leases.of(shard).unwrap();
        assert!(leases.has(lease) && changes.has_changed().unwrap());
        changes.mark_unchanged();
        leases.hold([(shard, 3), (second, 1)].into(), soon());
        assert!(leases.has(lease) && !changes.has_changed().unwrap());
        // Another process had it meanwhile.
        leases.hold([(shard, 5), (second, 1)].into(), soon());
        assert!(!leases.has(lease) && leases.has(leases.of(shard).unwrap()));
        leases.lose([shard]);
        assert_eq!((leases.of(shard), leases.of(second).is_some()), (None, true));
        // Its time is over, and begins again.
        leases.hold([(second, 1)].into(), now());
        assert_eq!(leases.of(second), None);
        changes.mark_unchanged();
        leases.hold([(second, 1)].into(), soon());
        assert!(leases.of(second).is_some() && changes.has_changed().unwrap());
    }

    #[test]
    fn who_is_alone_holds_all() {
        let lease = Leases::All.lease("any").unwrap();
        assert!(Leases::All.has(lease));
    }
}
