//! What builds leave behind. Images that deployments built stay while they serve, may be gone back
//! to, or are younger than an hour; everything else of ours goes, and nothing that is not ours.

use crate::{
    kinds::{
        deployments::{APP, DeploymentIndex, Deployments, Served},
        instances::{InstanceIndex, names},
    },
    world::World,
};
use container_engine::{EngineError, Image};
use contract::Fault;
use std::{collections::BTreeSet, time::Duration};

/// What is younger may be on its way into a record.
const YOUNG: Duration = Duration::from_secs(3600);
/// What builds cached and nobody used for this long goes.
const CACHE_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes the images that nothing needs any more.
pub async fn prune(world: &World) -> Result<(), EngineError> {
    let engine = &world.ports.engine;
    let now = world.ports.clock.now();
    let labels = names::of_installation(&world.ports.site.installation);
    let kept = pinned(world).map_err(|e| EngineError::Away(e.to_string()))?;
    for image in engine.images(&labels).await? {
        let built = image.labels.contains_key(APP);
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
        for service in Served::keys(instance) {
            let served = store.get_or_empty::<Served>(&service)?;
            let under_way = store.all(&DeploymentIndex::Lane { service })?;
            for id in served.latest.iter().copied().chain(under_way) {
                let found = store.get::<Deployments>(&id)?;
                let image = found.and_then(|f| f.state.deployment.image_ref.clone());
                pinned.extend(image);
            }
        }
    }
    Ok(pinned)
}
