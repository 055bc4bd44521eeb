//! What a release does outside of its record.

use super::{
    current::Current,
    machine::{Command, Effect, Outcome, Releases, Tell},
};
use crate::{
    ports::Published,
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{Fault, ReleaseId, releases::PublicationState};
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    _: ReleaseId,
    kept: Arc<Kept<Releases>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Publish => publish(&kept, &world).await,
        Effect::Tell(tell) => {
            let command = match tell {
                Tell::Superseded(_) => Command::Supersede,
                Tell::Reinstated(_) => Command::Reinstate,
            };
            self::tell(&world, tell.whom(), command).await
        }
    }
}

async fn publish(kept: &Kept<Releases>, world: &World) -> Result<Outcome, Retry> {
    let release = &kept.state.release;
    let mut results = Vec::new();
    for publication in release.publications.iter().filter(|p| p.state == PublicationState::Queued) {
        let result = match world.ports.publishers.get(&publication.target) {
            Some(publisher) => publisher.publish(release, publication).await?,
            None => Published::Refused("this target is not configured on this server".into()),
        };
        results.push((publication.id, result));
    }
    let current = world.store.get::<Current>(&Current::key(release.app_id, &release.channel))?;
    Ok(Outcome::Published(results, current))
}

async fn tell(world: &World, other: ReleaseId, command: Command) -> Result<Outcome, Retry> {
    match world.owners()?.releases.ask(other, command).await {
        Ok(_) | Err(Fault::NotFound(_)) => Ok(Outcome::Told),
        Err(fault) => Err(fault.into()),
    }
}
