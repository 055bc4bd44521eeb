//! The effects of releases: publish to targets, and notify other releases of the channel.

use super::{
    current::Current,
    rules::{Command, Effect, Outcome, Releases},
};
use crate::{
    ports::Published,
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{ReleaseId, releases::PublicationState};
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    _: ReleaseId,
    kept: Arc<Kept<Releases>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Publish => publish(&kept, &world).await,
        Effect::Tell(other) => tell(&kept, other, &world).await,
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

/// Tells another release where the channel's pointer points. If the pointer moves meanwhile, the
/// owner of the other release refuses, and the effect is retried.
async fn tell(kept: &Kept<Releases>, other: ReleaseId, world: &World) -> Result<Outcome, Retry> {
    let release = &kept.state.release;
    let current = world.store.get::<Current>(&Current::key(release.app_id, &release.channel))?;
    // There is no pointer while the app is being deleted, together with the other release.
    let Some(current) = current else { return Ok(Outcome::Told(other)) };
    world.owners()?.releases.ask_if_there(other, Command::Follow(current)).await?;
    Ok(Outcome::Told(other))
}
