//! What builds leave behind. Images that deployments built stay while they serve, may be gone back
//! to, or are younger than an hour; everything else of ours goes, and nothing that is not ours.

use super::{Deployments, Served, build::APP};
use crate::{instances::names, runtime::resource::Kept, world::World};
use contract::{AppId, deployments::DeploymentTarget};
use engine::{EngineError, Image};
use std::{collections::BTreeSet, time::Duration};
use store::StoreError;

/// What is younger may be on its way into a record.
const YOUNG: Duration = Duration::from_secs(3600);
/// What builds cached and nobody used for this long goes.
const CACHE_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

const TARGETS: [DeploymentTarget; 4] = [
    DeploymentTarget::Backend,
    DeploymentTarget::MarketServer,
    DeploymentTarget::MarketDashboard,
    DeploymentTarget::MarketStorefront,
];

/// Removes the images that nothing needs any more.
pub async fn prune(world: &World) -> Result<(), EngineError> {
    let engine = &world.ports.engine;
    let now = world.ports.clock.now();
    let labels = names::of_installation(&world.ports.site.installation);
    for image in engine.images(&labels).await? {
        let Some(app) = image.labels.get(APP).and_then(|app| app.parse().ok()) else { continue };
        let kept = pinned(world, app).map_err(|e| EngineError::Away(e.to_string()))?;
        if now.since(image.created_at) < YOUNG || kept.contains(&image.id) {
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

/// The images that an app's deployments may need: of those that served last, and of the one that is
/// under way.
fn pinned(world: &World, app: AppId) -> Result<BTreeSet<String>, StoreError> {
    let mut pinned = BTreeSet::new();
    for target in TARGETS {
        let key = Served::key(app, target);
        let served = world.store.get::<Served>(&key)?;
        let served = served.map(|served| served.record.latest.clone()).unwrap_or_default();
        let under_way = world.store.oldest::<Kept<Deployments>>(&format!("lane/{key}"), None, 1)?;
        for id in served.iter().map(ToString::to_string).chain(under_way) {
            let found = world.store.get::<Kept<Deployments>>(&id)?;
            pinned.extend(found.and_then(|found| found.record.state.deployment.image_ref.clone()));
        }
    }
    Ok(pinned)
}
