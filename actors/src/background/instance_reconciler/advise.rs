//! Tells instances of the security advisories that concern their images.

use super::Recorded;
use crate::{kinds::instances::Command, world::World};
use std::{sync::Arc, time::Duration};

/// Looks at all instances after each pause. Advisories come with the program, and versions with
/// deployments. A failure is tried again at the next look.
pub(super) async fn advise(world: Arc<World>, every: Duration) {
    loop {
        world.ports.clock.sleep(every).await;
        match super::instances(&world) {
            Ok(instances) => tell_news(&world, &instances).await,
            Err(e) => tracing::error!(error = %e, "the instances cannot be read"),
        }
    }
}

async fn tell_news(world: &World, instances: &[Recorded]) {
    let Ok(owners) = world.owners() else { return };
    for (id, seen) in instances.iter().filter(|(_, seen)| !seen.is_deleted()) {
        let advisories = seen.advisories(world);
        if advisories == seen.advised {
            continue;
        }
        if let Err(fault) = owners.instances.ask_if_there(*id, Command::Advise(advisories)).await {
            tracing::warn!(%id, error = %fault, "an instance was not told of advisories");
        }
    }
}
