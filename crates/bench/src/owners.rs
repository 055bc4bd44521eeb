//! The time and the memory for bringing 100,000 owners into memory.

use crate::{
    machine,
    outcome::{Explain, Outcome},
    seed,
    table::Row,
    world,
};
use actix::{Actor, Addr, Context, Handler, Message};
use actix_rt::{Arbiter, ArbiterHandle, System};
use actors::kinds::people::projects::Projects;
use contract::ProjectId;
use futures_util::{StreamExt, stream};
use std::{future::Future, time::Instant};
use store::{Snapshot, Store};
use tokio::sync::oneshot;

pub const METHOD: &str = "In this process: 100,000 stored projects are each asked something that \
    they refuse, 64 at a time, which wakes their owners (directory, guard, record, health) and \
    writes nothing. The yardstick is as many plain actix actors on the same two arbiters, which \
    read the same record when they start and answer one message.";

const OWNERS: usize = 100_000;
const AT_A_TIME: usize = 64;
/// The bytes of memory that an owner may take, with everything that belongs to it.
const MOST_MEMORY: f64 = 2300.0;
const BINDS: &str = "what belongs to an owner beside its record: context, mailbox, guard, health, and its \
    entries in directory and registry.";

/// The cost of waking one owner or actor.
struct Cost {
    micros: f64,
    bytes: f64,
}

/// Measures owners against bare actors.
pub fn measure() -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let store = seed::open(home.path())?;
    let (ours, bare) = System::new().block_on(wake_all(store))?;
    let micros = |cost: &Cost| (cost.micros, format!("{:.1} µs", cost.micros));
    let bytes = |cost: &Cost| (cost.bytes, format!("{:.0} B", cost.bytes));
    let plain = |(value, text): (f64, String)| (value, format!("{text}, plain actors"));
    Ok(vec![
        Row::new("waking each of 100,000 owners", micros(&ours), plain(micros(&bare)))
            .at_most(2.0, BINDS),
        Row::new("memory of each owner", bytes(&ours), plain(bytes(&bare))).aim(
            "at most 2.3 KB".into(),
            ours.bytes <= MOST_MEMORY,
            BINDS,
        ),
    ])
}

async fn wake_all(store: Store) -> Outcome<(Cost, Cost)> {
    let ids = seed::projects(&store, OWNERS).await?;
    let threads = [Arbiter::new(), Arbiter::new()];
    let arbiters: Vec<ArbiterHandle> = threads.iter().map(Arbiter::handle).collect();
    let world = world::start(store.clone(), &arbiters).await?;
    // Fills the caches of the store before the measurement.
    for id in &ids {
        read(&store, *id)?;
    }
    let project = ids.first().map(|id| read(&store, *id)).or_say("a project")??.state.clone();
    machine::wait_until_quiet();
    let (ours, _) = each(&ids, |id| {
        // The project exists, so nothing is written.
        let (world, project) = (world.clone(), project.clone());
        async move {
            world
                .to::<Projects>(id)
                .create(project)
                .await
                .map(drop)
                .map_err(|fault| format!("{id} answered {fault:?}"))
        }
    })
    .await?;
    machine::wait_until_quiet();
    let (bare, _actors) = each(&ids, |id| wake(id, store.clone(), &arbiters)).await?;
    Ok((ours, bare))
}

/// Wakes all of them and returns the mean cost. Keeps the results of `wake` until all are awake.
async fn each<T, F: Future<Output = Outcome<T>>>(
    ids: &[ProjectId],
    wake: impl FnMut(ProjectId) -> F,
) -> Outcome<(Cost, Vec<T>)> {
    let mut awake = Vec::with_capacity(ids.len());
    let (before, begun) = (machine::resident(None)?, Instant::now());
    let mut waking = stream::iter(ids.iter().copied()).map(wake).buffer_unordered(AT_A_TIME);
    while let Some(woken) = waking.next().await {
        awake.push(woken?);
    }
    let micros = begun.elapsed().as_secs_f64() * 1e6 / ids.len() as f64;
    let bytes = machine::resident(None)?.saturating_sub(before) as f64 / ids.len() as f64;
    Ok((Cost { micros, bytes }, awake))
}

fn read(store: &Store, id: ProjectId) -> Outcome<Snapshot<Projects>> {
    store.get::<Projects>(&id).or_say("the store")?.or_say(id)
}

/// An actor without supervision and other additions.
struct Plain {
    id: ProjectId,
    store: Store,
    record: Option<Snapshot<Projects>>,
}

/// Asks whether the actor has its record.
#[derive(Message)]
#[rtype(result = "bool")]
struct Ask;

impl Actor for Plain {
    type Context = Context<Self>;
    fn started(&mut self, _: &mut Self::Context) {
        self.record = read(&self.store, self.id).ok();
    }
}

impl Handler<Ask> for Plain {
    type Result = bool;
    fn handle(&mut self, _: Ask, _: &mut Self::Context) -> bool {
        self.record.is_some()
    }
}

/// Starts a plain actor on one of the arbiters and asks it.
fn wake(
    id: ProjectId,
    store: Store,
    arbiters: &[ArbiterHandle],
) -> impl Future<Output = Outcome<Addr<Plain>>> + use<> {
    let (started, address) = oneshot::channel();
    let last = id.to_string().bytes().last().map_or(0, usize::from);
    if let Some(arbiter) = arbiters.get(last % arbiters.len().max(1)) {
        arbiter.spawn_fn(move || {
            #[allow(clippy::disallowed_methods, reason = "what a guard costs is the question")]
            let _ = started.send(Plain { id, store, record: None }.start());
        });
    }
    async move {
        let actor = address.await.or_say("an arbiter")?;
        match actor.send(Ask).await {
            Ok(true) => Ok(actor),
            _ => Err(format!("{id} has no record")),
        }
    }
}
