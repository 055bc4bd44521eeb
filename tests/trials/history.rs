//! What callers saw of a register, and whether a register can have behaved so.
//!
//! Each value is written at most once. Then a history is linearizable exactly if it passes the test by zones of
//! Gibbons and Korach ("Testing Shared Memories", 1997), which takes no longer than sorting.

use std::{collections::HashMap, fmt};

/// A moment, in nanoseconds since the beginning of the history.
pub type Moment = u64;

/// What a caller did, from the moment before the call to the moment after the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operation {
    pub from: Moment,
    pub to: Moment,
    pub deed: Deed,
}

/// A value is a number. What is there at the beginning is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deed {
    Read(Option<u64>),
    Write(u64, Fate),
}

/// What the writer knows of a write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Done,
    NotDone,
    Unknown,
}

/// Why no register can have behaved so.
#[derive(Debug, PartialEq)]
pub enum Violation {
    /// A value that nobody wrote, or of which the writer was told that it was not written.
    FromNowhere(u64),
    /// A value was read before its write began.
    FromTheFuture(u64),
    /// The first value was there both before and after the second one.
    CameBack(Option<u64>, Option<u64>),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::FromNowhere(value) => write!(f, "{value} was read, and not written"),
            Violation::FromTheFuture(value) => write!(f, "{value} was read before it was written"),
            Violation::CameBack(value, other) => {
                write!(f, "{value:?} was there both before and after {other:?}")
            }
        }
    }
}

/// All that is known of one value.
#[derive(Debug)]
struct Zone {
    value: Option<u64>,
    /// The end of its first operation.
    first_end: Moment,
    /// The beginning of its last operation.
    last_begin: Moment,
}

impl Zone {
    /// The value was there all the time between the end of one operation and the beginning of another. Otherwise all
    /// its operations overlap, and it was there at some moment within its zone.
    fn is_forward(&self) -> bool {
        self.first_end < self.last_begin
    }

    fn low(&self) -> Moment {
        self.first_end.min(self.last_begin)
    }

    fn high(&self) -> Moment {
        self.first_end.max(self.last_begin)
    }
}

/// Whether a register can have behaved like this. The operations may be in any order.
pub fn check(history: &[Operation]) -> Result<(), Violation> {
    let mut zones = zones(history)?;
    zones.sort_by_key(Zone::low);
    let forward: Vec<_> = zones.iter().filter(|zone| zone.is_forward()).collect();
    for pair in forward.windows(2) {
        if pair[1].low() < pair[0].high() {
            return Err(Violation::CameBack(pair[0].value, pair[1].value));
        }
    }
    for zone in zones.iter().filter(|zone| !zone.is_forward()) {
        let before = forward.partition_point(|other| other.low() < zone.low());
        let around = before.checked_sub(1).map(|place| forward[place]);
        if let Some(around) = around.filter(|around| zone.high() < around.high()) {
            return Err(Violation::CameBack(around.value, zone.value));
        }
    }
    Ok(())
}

fn zones(history: &[Operation]) -> Result<Vec<Zone>, Violation> {
    let mut writes = HashMap::from([(None, (0, 0, Fate::Done))]);
    let mut reads: HashMap<Option<u64>, Vec<&Operation>> = HashMap::new();
    for operation in history {
        match operation.deed {
            Deed::Read(value) => reads.entry(value).or_default().push(operation),
            Deed::Write(value, fate) => {
                let write = (operation.from, operation.to, fate);
                assert!(writes.insert(Some(value), write).is_none(), "{value} twice");
            }
        }
    }
    if let Some(value) = reads.keys().find(|value| !writes.contains_key(*value)) {
        return Err(Violation::FromNowhere(value.unwrap_or_default()));
    }
    let mut zones = Vec::with_capacity(writes.len());
    for (value, (from, to, fate)) in writes {
        let reads = reads.get(&value).map_or(&[][..], Vec::as_slice);
        let end = match fate {
            Fate::Done => to,
            Fate::Unknown | Fate::NotDone if reads.is_empty() => continue,
            // It may be written long after the caller gave up.
            Fate::Unknown => Moment::MAX,
            Fate::NotDone => return Err(Violation::FromNowhere(value.unwrap_or_default())),
        };
        let first_end = reads.iter().map(|read| read.to).fold(end, Moment::min);
        let last_begin = reads.iter().map(|read| read.from).fold(from, Moment::max);
        if first_end < from {
            return Err(Violation::FromTheFuture(value.unwrap_or_default()));
        }
        zones.push(Zone { value, first_end, last_begin });
    }
    Ok(zones)
}

mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What a store does wrong.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Wrong {
        Nothing,
        /// Some reads are answered from a copy that is behind.
        NoFence,
        /// Some writes are acknowledged and lost.
        ForgetsWrites,
        /// Some writes that were refused are done later.
        WritesWhatItRefused,
        /// Some writes that were done are done a second time.
        WritesTwice,
    }

    /// Clients that read and write at random. Each operation takes effect at one moment between its beginning and
    /// its end, or later if its outcome is unknown.
    fn history(wrong: Wrong, seed: u64) -> Vec<Operation> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut operations = Vec::new();
        for client in 0..6 {
            let mut now: Moment = random.u64(1..200);
            for step in 0..80 {
                let from = now;
                let to = from + random.u64(5..100);
                now = to + random.u64(1..50);
                let value = client * 1000 + step;
                let fate = match random.u8(0..10) {
                    0 => Fate::Unknown,
                    1 => Fate::NotDone,
                    _ => Fate::Done,
                };
                let is_write = random.bool();
                let deed = if is_write { Deed::Write(value, fate) } else { Deed::Read(None) };
                operations.push(Operation { from, to, deed });
            }
        }
        // When each write is done: the value at any moment is that of the last one before it.
        let mut values: BTreeMap<Moment, Option<u64>> = [(0, None)].into();
        for operation in &operations {
            let Deed::Write(value, fate) = operation.deed else { continue };
            let moment = random.u64(operation.from..=operation.to);
            let is_wrong = random.u8(0..10) == 0;
            let moment = match fate {
                Fate::Done if is_wrong && wrong == Wrong::ForgetsWrites => None,
                Fate::Done => Some(moment),
                Fate::Unknown => random.bool().then(|| moment + random.u64(0..500)),
                Fate::NotDone => {
                    (is_wrong && wrong == Wrong::WritesWhatItRefused).then_some(moment)
                }
            };
            if let Some(moment) = moment {
                values.insert(moment, Some(value));
                if is_wrong && wrong == Wrong::WritesTwice {
                    values.insert(moment + 300, Some(value));
                }
            }
        }
        for operation in &mut operations {
            if let Deed::Read(found) = &mut operation.deed {
                let mut moment = random.u64(operation.from..=operation.to);
                if wrong == Wrong::NoFence && random.u8(0..10) == 0 {
                    moment = moment.saturating_sub(200);
                }
                *found = *values.range(..=moment).next_back().unwrap().1;
            }
        }
        random.shuffle(&mut operations);
        operations
    }

    #[test]
    fn a_register_is_never_objected_to() {
        for seed in 0..500 {
            let found = check(&history(Wrong::Nothing, seed));
            assert_eq!(found, Ok(()), "seed {seed}");
        }
    }

    #[test]
    fn a_store_that_is_wrong_is_objected_to() {
        use Wrong::{ForgetsWrites, NoFence, WritesTwice, WritesWhatItRefused};
        for wrong in [NoFence, ForgetsWrites, WritesWhatItRefused, WritesTwice] {
            let found = (0..100).filter(|seed| check(&history(wrong, *seed)).is_err()).count();
            assert!(found > 50, "{wrong:?}: {found} of 100");
        }
    }

    #[test]
    fn a_violation_says_what_was_seen() {
        let read = |from, to, value| Operation { from, to, deed: Deed::Read(value) };
        let write = |from, to, value, fate| Operation { from, to, deed: Deed::Write(value, fate) };
        let written = [write(1, 2, 7, Fate::Done), write(3, 4, 8, Fate::Done)];
        let with = |more| check(&[&written[..], &[more]].concat());
        assert_eq!(with(read(5, 6, Some(8))), Ok(()));
        assert_eq!(with(read(5, 6, Some(7))), Err(Violation::CameBack(Some(7), Some(8))));
        assert_eq!(with(read(5, 6, None)), Err(Violation::CameBack(None, Some(7))));
        assert_eq!(with(read(5, 6, Some(9))), Err(Violation::FromNowhere(9)));
        assert_eq!(with(read(0, 1, Some(8))), Err(Violation::FromTheFuture(8)));
        let late = [write(1, 2, 7, Fate::Unknown), read(3, 4, None), read(5, 6, Some(7))];
        assert_eq!(check(&late), Ok(()), "it was written after the caller gave up");
    }
}
