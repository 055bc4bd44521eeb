//! Keeps the walls around instances, with the exceptions that an operator makes.

use super::{UNTIL_THE_FIRST, instances};
use crate::{
    kinds::{
        hosting::{
            engines::{Engines, Host},
            instances::{InstanceIndex, Instances},
            names,
        },
        people::tenant::organization,
        world::World,
    },
    ports::egress::Reached,
    runtime::entries::Under,
};
use container_engine::{EngineError, Peers};
use contract::Fault;
use std::{collections::BTreeMap, time::Duration};

/// Raises the walls of an engine once it has an instance, and makes sure at each interval that they stand. Apart
/// from the rounds: the image of the helpers may have to be made first.
pub(super) async fn keep(world: &World, host: &Host, every: Duration) {
    loop {
        if has_none(world, host) {
            host.health.set_egress(Ok(()));
            world.ports.clock.sleep(UNTIL_THE_FIRST).await;
            continue;
        }
        let raised = match world.ports.egress.of_instances().await {
            Some(reached) => raise(world, host, reached).await,
            None => Ok(()),
        };
        // An attempt makes containers.
        let pause = if raised.is_ok() { every } else { every * 3 };
        host.health.set_egress(raised);
        world.ports.clock.sleep(pause).await;
    }
}

/// Whether no instance is placed on an engine, nor on its way there.
fn has_none(world: &World, host: &Host) -> bool {
    let Some(engine) = host.id else {
        return world.store.oldest(&InstanceIndex::All, None).count_up_to(1) == Ok(0);
    };
    let coming = InstanceIndex::Elsewhere { engine };
    world.store.oldest::<Instances>(&Under::<Engines>(engine), None).count_up_to(1) == Ok(0)
        && world.store.oldest(&coming, None).count_up_to(1) == Ok(0)
}

async fn raise(world: &World, host: &Host, reached: Reached) -> Result<(), EngineError> {
    // Without the exceptions, connections would end that an operator allows: the walls stay as they are.
    let unread = |e: Fault| EngineError::Unreachable(format!("the instances cannot be read: {e}"));
    host.engine.raise_walls(&peers(world, host, reached).map_err(unread)?).await
}

/// What each network reaches of the inside.
fn peers(
    world: &World,
    host: &Host,
    Reached { by_all, by_organization }: Reached,
) -> Result<Peers, Fault> {
    let mut of_network = BTreeMap::new();
    if !by_organization.is_empty() {
        for (id, instance) in instances(world, host)? {
            let reached = match organization(&world.store, instance.state.app_id) {
                Ok(of) => by_organization.get(&of),
                // An app that is deleted may have none any more.
                Err(Fault::NotFound(_)) => None,
                Err(fault) => return Err(fault),
            };
            if let Some(reached) = reached {
                of_network.insert(names::network(id), reached.clone());
            }
        }
    }
    Ok(Peers { of_all: by_all, of_network })
}
