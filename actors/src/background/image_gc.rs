//! Removes unused build cache and the images that deployments built and nothing needs.
//!
//! An image stays if it is one of the last five that served a service, if a deployment in a queue
//! uses it, or if it is younger than an hour. Images that no deployment built always stay.

use crate::{
    kinds::{
        hosting::{
            deployments::{DeploymentIndex, Deployments},
            image_builds::from_source::{APP, labels_of_caches},
            instances::{InstanceIndex, history::DeploymentHistory},
            names,
        },
        world::World,
    },
    runtime::store::Store,
};
use container_engine::{EngineError, Image};
use contract::{DeploymentId, Fault};
use std::{collections::BTreeSet, time::Duration};

/// How many of the images that served a service last stay, for a rollback without a build.
const STAY: usize = 5;
/// A record may not name a younger image yet.
const YOUNG: Duration = Duration::from_secs(3600);
/// What builds leave for the next ones goes after this time, so that base images are fetched anew.
const CACHES_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes the images that nothing needs, and unused build cache.
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
    let caches = labels_of_caches(&world.ports.site.installation);
    let freed = engine.prune_build_caches(&caches, CACHES_FOR).await?;
    if freed > 0 {
        tracing::info!(freed, "unused build cache was removed");
    }
    Ok(())
}

fn names_of(image: &Image) -> Vec<String> {
    if image.tags.is_empty() { vec![image.id.clone()] } else { image.tags.clone() }
}

/// The images of the deployments that served each service last, and of those in its queue.
fn pinned(world: &World) -> Result<BTreeSet<String>, Fault> {
    let (store, mut pinned) = (&world.store, BTreeSet::new());
    for instance in store.newest(&InstanceIndex::All, None).keys() {
        for service in DeploymentHistory::keys(instance?) {
            let served = store.get_or_empty::<DeploymentHistory>(&service)?;
            let mut stay = BTreeSet::new();
            for id in served.latest.iter().copied() {
                if stay.len() == STAY {
                    break;
                }
                stay.extend(image_of(store, id)?);
            }
            for queued in store.newest(&DeploymentIndex::Queue { service }, None) {
                stay.extend(queued?.1.deployment.image_ref.clone());
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
