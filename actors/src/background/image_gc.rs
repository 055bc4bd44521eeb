//! What builds leave behind. Images that deployments built stay while they serve, may be gone back
//! to, or are younger than an hour; everything else of ours goes, and nothing that is not ours.

use crate::kinds::deployments::{APP, Deployments, Served};
use crate::{
    kinds::instances::{Instances, names},
    runtime::resource::Kept,
    world::World,
};
use container_engine::{EngineError, Image};
use std::{collections::BTreeSet, time::Duration};
use store::StoreError;

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
fn pinned(world: &World) -> Result<BTreeSet<String>, StoreError> {
    let (store, mut pinned) = (&world.store, BTreeSet::new());
    for instance in store.newest::<Kept<Instances>>("all", None, usize::MAX)? {
        let Ok(instance) = instance.parse() else { continue };
        for key in Served::keys(instance) {
            let served = store.get::<Served>(&key)?;
            let served = served.map(|served| served.record.latest.clone()).unwrap_or_default();
            let under_way =
                store.oldest::<Kept<Deployments>>(&format!("lane/{key}"), None, usize::MAX)?;
            for id in served.iter().map(ToString::to_string).chain(under_way) {
                let found = store.get::<Kept<Deployments>>(&id)?;
                let image = found.and_then(|f| f.record.state.deployment.image_ref.clone());
                pinned.extend(image);
            }
        }
    }
    Ok(pinned)
}
