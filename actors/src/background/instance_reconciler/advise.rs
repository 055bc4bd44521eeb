//! Tells instances of the security advisories that concern their images.

use super::Recorded;
use crate::kinds::{
    hosting::instances::{Command, Instances},
    world::World,
};

/// Tells each instance whose advisories are others than those that it knows. Advisories come with the
/// program, and versions with deployments. The next round tries again what failed.
pub(super) async fn tell_news(world: &World, instances: &[Recorded]) {
    for (id, seen) in instances.iter().filter(|(_, seen)| !seen.is_deleted()) {
        let advisories = seen.advisories(world);
        if advisories == seen.advised {
            continue;
        }
        if let Err(fault) =
            world.to::<Instances>(*id).ask_if_there(Command::Advise(advisories)).await
        {
            tracing::warn!(%id, error = %fault, "an instance was not told of advisories");
        }
    }
}
