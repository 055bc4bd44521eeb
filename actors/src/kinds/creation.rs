//! The turn of those who create something of which its parent may have only so many, or one at a time: each
//! counts what is there before it creates. Within a process the turn is in memory. Where other processes share the
//! store, it is also in a record, for half a minute, which the clock of each process measures. So of two processes, one
//! that takes longer, or whose clock is as far ahead, lets the other exceed the limit by what it creates.

use crate::{
    ports::random::Random,
    runtime::{
        clock::Clock,
        side_record::{End, SideRecord},
        store::Store,
        turns::{Turn, Turns},
    },
};
use contract::{EventId, Fault, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{Change, Merge};
use ulid::Ulid;

/// For how long a turn is kept from others. A process that ends in the middle keeps it for no longer.
const HELD: Duration = Duration::from_secs(30);
/// The pause before it is looked again whether the turn of another process has ended.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// Who has the turn. The key is the id of the parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreationTurn {
    by: EventId,
    until: Timestamp,
}

impl SideRecord for CreationTurn {
    fn end(&self) -> End {
        End::At(self.until)
    }
}

impl Merge for CreationTurn {
    /// Whose turn has ended.
    type Delta = EventId;

    fn merge(before: Option<Self>, ended: &EventId) -> Option<Self> {
        before.filter(|turn| turn.by != *ended)
    }
}

/// A turn. It ends when it is dropped.
pub struct Creation {
    _here: Turn<Ulid>,
    _among_nodes: Option<TurnAmongNodes>,
}

struct TurnAmongNodes {
    store: Store,
    key: String,
    by: EventId,
}

impl Drop for TurnAmongNodes {
    fn drop(&mut self) {
        self.store.note(Change::new().merge::<CreationTurn>(&self.key, self.by));
    }
}

/// Waits for the turn of a parent.
pub(super) async fn take(
    turns: &Turns<Ulid>,
    parent: Ulid,
    (store, clock, random): (&Store, &Clock, &Random),
) -> Result<Creation, Fault> {
    let here = turns.take(parent).await?;
    let among_nodes = match store.is_alone() {
        true => None,
        false => Some(take_among_nodes(parent, store, clock, random).await?),
    };
    Ok(Creation { _here: here, _among_nodes: among_nodes })
}

async fn take_among_nodes(
    parent: Ulid,
    store: &Store,
    clock: &Clock,
    random: &Random,
) -> Result<TurnAmongNodes, Fault> {
    let (key, by) = (parent.to_string(), random.id(clock.now()));
    loop {
        let seen = store.get::<CreationTurn>(&key)?;
        let now = clock.now();
        if seen.as_ref().is_none_or(|turn| turn.until <= now) {
            let turn = CreationTurn { by, until: now + HELD };
            let taken = Change::new().replace::<CreationTurn>(&key, seen.as_deref(), turn);
            match store.commit(taken).await {
                Ok(()) => return Ok(TurnAmongNodes { store: store.clone(), key, by }),
                Err(Fault::Stale) => {}
                Err(fault) => return Err(fault),
            }
        } else {
            clock.sleep(LOOKS_EVERY).await;
            store.fence().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::manual_clock::ManualClock;
    use futures_util::future::join_all;
    use std::cell::Cell;
    use store::{Memory, Nodes, Postgres, Record};

    #[test]
    fn one_of_all_processes_creates_at_a_time() {
        let Some(address) = test_support::postgres::new_store("creations") else { return };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = folders.each_ref().map(|folder| {
            let address = Postgres::parse(&address).unwrap();
            let trees = [CreationTurn::TREE];
            store::Store::connect(
                &address,
                Nodes::Several,
                folder.path(),
                &trees,
                Memory::default(),
            )
        });
        let nodes = [one, two].map(|store| (Store::from(store.unwrap()), Turns::apart(1)));
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let (random, creating, created) = (Random::default(), Cell::new(0), Cell::new(0));
        actix_rt::System::new().block_on(async {
            let passing = clock.clone();
            #[allow(clippy::disallowed_methods, reason = "the database is waited for")]
            actix_rt::spawn(async move {
                loop {
                    let millisecond = Duration::from_millis(1);
                    tokio::time::sleep(millisecond).await;
                    passing.advance(millisecond);
                }
            });
            let creations = (0..16).map(async |n| {
                let (store, turns) = &nodes[n % 2];
                let turn = take(turns, Ulid(1), (store, &clock.port(), &random)).await.unwrap();
                assert_eq!(creating.replace(1), 0);
                store.fence().await.unwrap();
                creating.set(0);
                created.set(created.get() + 1);
                drop(turn);
            });
            join_all(creations).await;
            assert_eq!(created.get(), 16);
            // The turn of a process that has ended is over some time later.
            let (store, turns) = &nodes[0];
            let turn = take(turns, Ulid(1), (store, &clock.port(), &random)).await.unwrap();
            std::mem::forget(turn);
            clock.advance(HELD);
            let (store, turns) = &nodes[1];
            take(turns, Ulid(1), (store, &clock.port(), &random)).await.unwrap();
        });
    }
}
