//! The effects of releases: hand publications to their targets, ask them to withdraw, and notify
//! other releases of the channel.

use super::{
    current::Current,
    rules::{Command, Effect, Outcome, PublicationRequest, Releases, TargetReply},
};
use crate::{
    kinds::{
        delivery::{
            artifacts::Artifacts,
            publications::{self, Follow, Publications, options_of},
        },
        world::World,
    },
    runtime::{
        resource::{Kept, Retry},
        store::get,
    },
};
use contract::{Fault, ReleaseId, releases::Publication};
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    effect: Effect,
    _: ReleaseId,
    kept: Snapshot<Releases>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Publish => publish(&kept, &world).await,
        Effect::Ask(request) => ask(request, &world).await,
        Effect::Tell(other) => notify(&kept, other, &world).await,
    }
}

async fn publish(kept: &Kept<Releases>, world: &World) -> Result<Outcome, Retry> {
    let release = &kept.state.release;
    let mut results = Vec::new();
    for publication in kept.state.waiting() {
        results.push((publication.id, hand_over(kept, publication, world).await?));
    }
    let current = world.store.get::<Current>(&Current::key(release.app_id, &release.channel))?;
    Ok(Outcome::Published(results, current))
}

/// Hands a publication to its owner. The install page of `ota` is rendered on request, so nothing
/// is left to do for it.
async fn hand_over(
    kept: &Kept<Releases>,
    publication: &Publication,
    world: &World,
) -> Result<TargetReply, Retry> {
    let release = &kept.state.release;
    let artifact = get::<Artifacts>(&world.store, publication.artifact_id)?;
    let platform = artifact.state.artifact.platform;
    let order = match options_of(release, publication.target, platform, kept.state.rollout) {
        Ok(Some(order)) => order,
        Ok(None) => {
            let url = format!("{}/install/{}", world.ports.site.api_url, release.id);
            return Ok(TargetReply::Live { url });
        }
        Err(fault) => return Ok(TargetReply::Refused(fault.to_string())),
    };
    let (id, app_id) = (publication.id, release.app_id);
    match world.store.get::<Publications>(&id)? {
        Some(_) => world.to::<Publications>(id).ask(publications::Command::Again(order)).await?,
        None => {
            let new = publications::New { publication: publication.clone(), app_id, order };
            world.to::<Publications>(id).create(new).await?
        }
    };
    Ok(TargetReply::Begun)
}

async fn ask(request: PublicationRequest, world: &World) -> Result<Outcome, Retry> {
    let (id, command) = match request {
        PublicationRequest::Withdraw(id) => (id, publications::Command::Withdraw),
        PublicationRequest::Restore(id) => (id, publications::Command::Restore),
    };
    world.to::<Publications>(id).ask_if_there(command).await?;
    Ok(Outcome::Asked(request))
}

impl Follow for World {
    async fn follow(&self, publication: &Publication) -> Result<(), Fault> {
        let id = publication.release_id;
        let release = get::<Releases>(&self.store, id)?;
        let key = Current::key(release.state.release.app_id, &release.state.release.channel);
        let current = self.store.get::<Current>(&key)?;
        let report = Command::Report { publication: Box::new(publication.clone()), current };
        self.to::<Releases>(id).ask(report).await.map(drop)
    }

    fn follows(&self, publication: &Publication) -> Result<bool, Fault> {
        Ok(self.store.get::<Releases>(&publication.release_id)?.is_some())
    }
}

/// Notifies another release of where the channel's pointer points. If the pointer moves meanwhile, the
/// owner of the other release refuses, and the effect is retried.
async fn notify(kept: &Kept<Releases>, other: ReleaseId, world: &World) -> Result<Outcome, Retry> {
    let release = &kept.state.release;
    let current = world.store.get::<Current>(&Current::key(release.app_id, &release.channel))?;
    // There is no pointer while the app is being deleted, together with the other release.
    let Some(current) = current else { return Ok(Outcome::Told(other)) };
    world.to::<Releases>(other).ask_if_there(Command::Follow(current)).await?;
    Ok(Outcome::Told(other))
}
