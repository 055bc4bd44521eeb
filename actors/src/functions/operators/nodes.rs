//! What the nodes of a service tell each other for operators: how each one is, which of its actors are not well, and
//! which actors of others are to be restarted.

use super::overview::{census, readiness};
use crate::{
    kinds::world::World,
    runtime::told::{self, Heard},
};
use contract::{
    Fault, Timestamp,
    endpoint::ReadyState,
    operators::{Actor, ActorCount, ActorState, NodeStatus},
};
use serde::{Deserialize, Serialize};
use std::sync::PoisonError;

/// What the bulletins are about.
const REPORTS: &str = "nodes";
const RESTARTS: &str = "restarts";
/// The actors that are not well, of one node, of which others learn.
const MOST_TROUBLED: usize = 50;
/// The last restarts that a node tells of.
const MOST_RESTARTS: usize = 50;

/// How a node is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub status: NodeStatus,
    pub counts: Vec<ActorCount>,
    /// The actors that are not well, or were restarted.
    pub troubled: Vec<Actor>,
}

/// How this node is. `status` is the one of its readiness.
pub fn own(world: &World, now: Timestamp, status: ReadyState) -> Report {
    let (counts, troubled) = census(world, now);
    let store = world.store.raw();
    let status = NodeStatus {
        machine: world.ports.machine.name(),
        answers: true,
        status,
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: world.started_at,
        shards: (!store.is_alone()).then(|| store.leases().len() as u64),
        copy_age: store.age_of_copy().as_secs(),
    };
    Report { status, counts, troubled }
}

/// How the other nodes are.
pub fn others(world: &World) -> impl Iterator<Item = Report> {
    told::told::<Report>(&world.store, REPORTS).into_iter().map(|(_, report)| report)
}

/// Asks the node that has this actor to restart it. Returns the actor, as that node told of it.
pub fn ask_to_restart(world: &World, actor: &str) -> Result<Actor, Fault> {
    let found = others(world).flat_map(|report| report.troubled).find(|known| known.id == actor);
    let found = found.ok_or(Fault::NotFound("actor in memory"))?;
    let mut restarts = world.restarts.lock().unwrap_or_else(PoisonError::into_inner);
    restarts.add(actor.to_owned(), MOST_RESTARTS);
    Ok(found)
}

/// The restarts of which this node has heard.
#[derive(Default)]
pub struct Exchange(Heard);

impl Exchange {
    /// Is called each second: tells how this node is, and restarts what others ask for.
    pub async fn tick(&mut self, world: &World) {
        let now = world.ports.clock.now();
        let mut report = own(world, now, readiness(world, now).status);
        report.status.answers = false;
        report.troubled.sort_by_key(|actor| actor.state == ActorState::Running);
        report.troubled.truncate(MOST_TROUBLED);
        for actor in &mut report.troubled {
            actor.node = Some(report.status.machine.clone());
        }
        told::tell(&world.store, REPORTS, &report);
        let asked = world.restarts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        told::tell(&world.store, RESTARTS, &asked);
        for news in self.0.news(told::told(&world.store, RESTARTS)) {
            // What was asked before this node had heard of the other one is over.
            for actor in news.things.into_iter().filter(|_| !news.is_first) {
                restart(world, actor).await;
            }
        }
    }
}

async fn restart(world: &World, actor: String) {
    let Ok(owners) = world.owners() else { return };
    match owners.restart(&actor).await {
        Ok(true) => tracing::info!(actor, "restarted, as an operator asked another node"),
        // It is at another node.
        Ok(false) => {}
        Err(e) => tracing::warn!(actor, error = %e, "not restarted"),
    }
}
