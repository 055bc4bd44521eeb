//! What builds leave behind. Images that deployments built stay while they serve, are among the last
//! five of a service, or are younger than an hour; everything else of ours goes, and nothing that is
//! not ours.

use crate::{
    kinds::{
        deployments::{DeploymentHistory, DeploymentIndex, Deployments},
        image_builds::from_source::APP,
        instances::{InstanceIndex, names},
    },
    runtime::store::Store,
    world::World,
};
use container_engine::{EngineError, Image};
use contract::{DeploymentId, Fault};
use std::{collections::BTreeSet, time::Duration};

/// So many of the images that served a service last stay, so that it can go back to them at once.
const STAY: usize = 5;
/// What is younger may be on its way into a record.
const YOUNG: Duration = Duration::from_secs(3600);
/// What builds cached and nobody used for this long goes.
const CACHE_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes the images that nothing needs any more.
pub async fn prune(world: &World) -> Result<(), EngineError> {
    let engine = &world.ports.engine;
    let now = world.ports.clock.now();
    let labels = names::of_installation(&world.ports.site.installation);
    let kept = pinned(world).map_err(|e| EngineError::Unreachable(e.to_string()))?;
    for image in engine.images(&labels).await? {
        let built = image.labels.get(APP).is_some_and(|app| !app.is_empty());
        if !built || now.since(image.created_at) < YOUNG || kept.contains(&image.id) {
            continue;
        }
        for name in names_of(&image) {
            match engine.remove_image(&name).await {
                Ok(()) => tracing::info!(image = name, "an image that nothing needs was removed"),
                Err(EngineError::Refused(why)) => {
                    tracing::info!(image = name, why, "an image stays")
                }
                Err(e) => return Err(e),
            }
        }
    }
    let freed = engine.prune_build_cache(CACHE_UNUSED).await?;
    if freed > 0 {
        tracing::info!(freed, "what builds had cached was removed");
    }
    Ok(())
}

fn names_of(image: &Image) -> Vec<String> {
    if image.tags.is_empty() { vec![image.id.clone()] } else { image.tags.clone() }
}

/// The images that deployments may need: of those that served each service last, and of the ones
/// that are under way.
fn pinned(world: &World) -> Result<BTreeSet<String>, Fault> {
    let (store, mut pinned) = (&world.store, BTreeSet::new());
    for instance in store.all(&InstanceIndex::All)? {
        for service in DeploymentHistory::keys(instance) {
            let served = store.get_or_empty::<DeploymentHistory>(&service)?;
            let mut stay = BTreeSet::new();
            for id in served.latest.iter().copied() {
                if stay.len() == STAY {
                    break;
                }
                stay.extend(image_of(store, id)?);
            }
            for id in store.all(&DeploymentIndex::Queue { service })? {
                stay.extend(image_of(store, id)?);
            }
            pinned.append(&mut stay);
        }
    }
    Ok(pinned)
}

fn image_of(store: &Store, id: DeploymentId) -> Result<Option<String>, Fault> {
    let found = store.get::<Deployments>(&id)?;
    Ok(found.and_then(|found| found.deployment.image_ref.clone()))
}
