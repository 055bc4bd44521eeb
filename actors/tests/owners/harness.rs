//! The faults that every owner must survive: each operation of the engine fails once, before or
//! after it is carried out; and each operation is carried out twice, because the first answer is
//! lost.

use super::world;
use actix_rt::{Arbiter, System};
use actors::{
    kinds::{table::Owned, world::World},
    ports::Ports,
    runtime::{manual_clock::ManualClock, resource::Resource},
};
use container_engine::fake::{Fake, InjectedFault, Operation, Times};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a record may take to reach its state, in real time. On the clock of the test that is up
/// to 150 minutes, and on a busy machine less, since time waits there for the owners.
pub const WITHIN: Duration = Duration::from_secs(180);

/// Runs a test in a world of its own.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<World>, Fake) -> F) {
    run_with(|ports| ports, test);
}

/// Like [`run`], with other ports.
pub fn run_with<F: Future<Output = ()>>(
    replace: impl FnOnce(Ports) -> Ports,
    test: impl FnOnce(Arc<World>, Fake) -> F,
) {
    run_by(&world::clock(), replace, test);
}

/// Like [`run_with`], by this clock.
pub fn run_by<F: Future<Output = ()>>(
    clock: &ManualClock,
    replace: impl FnOnce(Ports) -> Ports,
    test: impl FnOnce(Arc<World>, Fake) -> F,
) {
    let folder = tempfile::tempdir().unwrap();
    let engine = world::engine(clock);
    System::new().block_on(async {
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let parts = (clock, &engine);
        let world = world::start_with(folder.path(), parts, &arbiters, replace).await;
        test(world, engine).await;
    });
}

/// Waits until a record is as `wanted`.
pub async fn comes_to<R: Resource>(
    world: &World,
    id: R::Key,
    told: &str,
    wanted: impl Fn(Option<&R::State>) -> bool,
) {
    let begun = Instant::now();
    loop {
        let found = world.store.get::<R>(&id).unwrap();
        let state = found.as_ref().map(|found| &found.state);
        if wanted(state) {
            return;
        }
        let found = serde_json::to_string(&state).unwrap();
        assert!(begun.elapsed() < WITHIN, "{told}: it stays {found}");
        world::a_moment().await;
    }
}

pub const FAILURES: [InjectedFault; 2] = [InjectedFault::FailBefore, InjectedFault::FailAfter];

/// Each of these operations with each of the [`FAILURES`].
pub fn pairs(used: &[Operation]) -> impl Iterator<Item = (Operation, InjectedFault)> {
    used.iter().flat_map(|operation| FAILURES.map(|fault| (*operation, fault)))
}

/// Runs `life` while each of these operations fails once in this way.
pub async fn fails_once(
    engine: &Fake,
    used: &[Operation],
    fault: InjectedFault,
    life: impl AsyncFn(&str),
) {
    let before = injected_counts(engine, used);
    for operation in used {
        engine.inject(*operation, fault.clone(), Times::Once);
    }
    life(&format!("{used:?} {fault:?}")).await;
    let after = injected_counts(engine, used);
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "all are used");
}

/// How many faults were injected into each of these operations so far.
fn injected_counts(engine: &Fake, used: &[Operation]) -> Vec<u64> {
    used.iter().map(|operation| engine.injected(*operation)).collect()
}

/// Runs `life` once for each group of operations. Each operation of the group is carried out but
/// never returns; all owners of the kind are restarted after that.
pub async fn is_done_twice<R: Owned>(
    world: &Arc<World>,
    engine: &Fake,
    used: &[&[Operation]],
    life: impl AsyncFn(&str),
) {
    for operations in used {
        for operation in *operations {
            engine.inject(*operation, InjectedFault::HangAfter, Times::Once);
        }
        let before = injected_counts(engine, operations);
        let (world, fake, watched) = (world.clone(), engine.clone(), operations.to_vec());
        let mut seen = before.clone();
        let restarts = actix_rt::spawn(async move {
            loop {
                world.ports.clock.sleep(Duration::from_millis(100)).await;
                let now = injected_counts(&fake, &watched);
                if now != seen {
                    seen = now;
                    restart_all::<R>(&world).await;
                }
            }
        });
        life(&format!("{operations:?} twice")).await;
        restarts.abort();
        let after = injected_counts(engine, operations);
        assert!(before.iter().zip(&after).all(|(before, after)| before < after), "all are used");
    }
}

async fn restart_all<R: Owned>(world: &World) {
    let ids: Vec<_> = world.store.whole::<R>(None).keys().collect();
    for id in ids {
        let _ = world.to::<R>(id.unwrap()).restart().await;
    }
}
