//! Lives of owners over one store, on real threads.

use actix_rt::ArbiterHandle;
use actors::{kinds::world::World, runtime::manual_clock::ManualClock};
use std::{path::Path, sync::Arc, time::Duration};
use store::{Change, Memory, Store, StoreError};
use tokio::sync::oneshot;

/// Lets the threads of owners and of the store work.
#[allow(clippy::disallowed_methods, reason = "real threads are waited for")]
pub async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Moves the clock to the next sleeper, again and again, by `step` at most. Before each step, the threads
/// of the owners and the store do what they have to do: on a busy machine, a deadline must not pass before
/// its owner had a turn.
pub async fn time_passes(
    world: Arc<World>,
    clock: ManualClock,
    owners: Vec<ArbiterHandle>,
    step: Duration,
) {
    loop {
        a_moment().await;
        take_turns(&owners).await;
        // The store answers this after all that was written before, and a slow disk takes its time.
        let _ = world.store.commit(Change::new()).await;
        take_turns(&owners).await;
        if world.store.raw().waiting() == 0 {
            clock.advance_to_next(step);
        }
    }
}

/// Waits until the threads of the owners have done what they had to do.
async fn take_turns(owners: &[ArbiterHandle]) {
    for owner in owners {
        let (done, is_done) = oneshot::channel();
        owner.spawn(async move {
            let _ = done.send(());
        });
        let _ = is_done.await;
    }
}

/// Opens the store when the life before has released it.
pub async fn open(folder: &Path) -> Store {
    for _ in 0..10_000 {
        match Store::open(folder, &actors::records::trees(), Memory::default()) {
            Err(StoreError::InUse(_)) => a_moment().await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the store is never let go of");
}
