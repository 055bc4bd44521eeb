//! Chooses the engine of a new instance. Pure.

use contract::{EngineId, Fault, text::Slug};
use std::{cmp::Reverse, collections::BTreeMap};

/// An engine that may get the instance.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: Option<EngineId>,
    /// Whether it takes no more instances.
    pub draining: bool,
    pub labels: BTreeMap<Slug, Slug>,
    /// Whether it answers.
    pub is_reachable: bool,
    /// Whether its disk has room.
    pub has_room: bool,
    /// What its instances are promised of it.
    pub promised: Share,
    /// What may be promised of it. `None`: it has not told yet what it has.
    pub most: Option<Share>,
}

/// A part of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes.
    pub memory: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u64,
}

impl Candidate {
    /// The memory that is left with an instance that needs so much. `None`: it does not fit.
    pub fn left(&self, needs: Share) -> Option<u64> {
        let most = self.most?;
        let cpus = most.cpu_millis.checked_sub(self.promised.cpu_millis)?;
        cpus.checked_sub(needs.cpu_millis)?;
        most.memory.checked_sub(self.promised.memory)?.checked_sub(needs.memory)
    }
}

/// The engine of a new instance: of those that have the labels and room, the one with the most memory left. If it
/// fits on none, the emptiest, which then says what it lacks.
pub fn place(
    candidates: &[Candidate],
    labels: &BTreeMap<Slug, Slug>,
    needs: Share,
) -> Result<Option<EngineId>, Fault> {
    let has = |engine: &&Candidate| {
        labels.iter().all(|(name, value)| engine.labels.get(name) == Some(value))
    };
    let labelled: Vec<_> = candidates.iter().filter(has).collect();
    if labelled.is_empty() {
        return Err(Fault::invalid(
            "engineLabels",
            "must be labels that a container engine has; ask an operator which there are",
        ));
    }
    let taking: Vec<_> = labelled.into_iter().filter(|engine| !engine.draining).collect();
    if taking.is_empty() {
        return Err(Fault::NotNow(
            "no container engine takes new instances: all are being emptied; ask an operator for one".into(),
        ));
    }
    let with_room = taking.into_iter().filter(|engine| engine.has_room);
    // Of equal ones, the first: that of the settings, and then the oldest.
    let best = with_room.min_by_key(|engine| {
        let left = engine.left(needs);
        let free = engine.most.map_or(0, |most| most.memory.saturating_sub(engine.promised.memory));
        Reverse((engine.is_reachable, left.is_some(), left.unwrap_or(free)))
    });
    best.map(|engine| engine.id).ok_or(Fault::NoRoom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    const GB: u64 = 1 << 30;

    fn share(gb: u64) -> Share {
        Share { memory: gb * GB, cpu_millis: 1_000 }
    }

    fn engine(id: u128, promised: u64) -> Candidate {
        Candidate {
            id: (id > 0).then(|| EngineId::of(Ulid(id))),
            draining: false,
            labels: BTreeMap::new(),
            is_reachable: true,
            has_room: true,
            promised: share(promised),
            most: Some(Share { memory: 16 * GB, cpu_millis: 16_000 }),
        }
    }

    fn labels(text: &str) -> BTreeMap<Slug, Slug> {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.parse().unwrap(), value.parse().unwrap())
        };
        text.split_whitespace().map(pair).collect()
    }

    fn placed(candidates: &[Candidate], wanted: &str) -> Option<EngineId> {
        place(candidates, &labels(wanted), share(2)).unwrap()
    }

    #[test]
    fn the_engine_with_the_most_memory_left_gets_the_instance() {
        let [own, empty, full] = [engine(0, 4), engine(1, 1), engine(2, 15)];
        assert_eq!(placed(&[own.clone(), empty.clone(), full.clone()], ""), empty.id);
        assert_eq!(placed(&[own.clone(), engine(1, 4)], ""), None, "of equal ones the first");
        assert_eq!(
            placed(std::slice::from_ref(&full), ""),
            full.id,
            "it says itself that it is full"
        );
        let silent = Candidate { is_reachable: false, ..empty.clone() };
        assert_eq!(placed(&[own.clone(), silent.clone()], ""), own.id);
        assert_eq!(placed(&[silent], ""), empty.id, "it waits for its engine");
        let busy = Candidate { promised: Share { memory: 0, cpu_millis: 15_500 }, ..empty.clone() };
        assert_eq!(placed(&[own.clone(), busy], ""), own.id, "it lacks a processor");
        let unknown = Candidate { most: None, ..empty };
        assert_eq!(placed(&[unknown, own.clone()], ""), own.id);
    }

    #[test]
    fn labels_drains_and_full_disks_leave_engines_out() {
        let own = engine(0, 0);
        let eu = Candidate { labels: labels("region=eu disk=ssd"), ..engine(1, 9) };
        let all = [own.clone(), eu.clone()];
        assert_eq!(placed(&all, "region=eu"), eu.id);
        let nowhere = place(&all, &labels("region=us"), share(1));
        assert!(matches!(nowhere, Err(Fault::Invalid(_))), "{nowhere:?}");
        let emptied = [own.clone(), eu].map(|it| Candidate { draining: true, ..it });
        let none = place(&emptied, &labels(""), share(1));
        assert!(matches!(none, Err(Fault::NotNow(_))), "{none:?}");
        let full = [Candidate { has_room: false, ..own }];
        assert_eq!(place(&full, &labels(""), share(1)), Err(Fault::NoRoom));
    }
}
