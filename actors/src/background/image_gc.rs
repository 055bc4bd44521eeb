//! Removes unused build cache and the images that deployments built and nothing needs.
//!
//! An image stays if it is one of the last five that served a service, if a deployment in a queue
//! uses it, or if it is younger than ten minutes. Of an organization whose images are as large as its quota
//! allows, only the last that served stays. Images that no deployment built always stay.

use crate::{
    kinds::{
        hosting::{
            deployments::{DeploymentIndex, Deployments},
            engines::Host,
            image_builds::{
                from_source::{APP, labels_of_caches},
                quotas,
            },
            instances::{InstanceIndex, Instances, history::DeploymentHistory},
            names,
        },
        people::{
            apps::{AppIndex, Apps},
            usage,
        },
        world::World,
    },
    runtime::{resource::Row, store::Store},
};
use container_engine::{EngineError, Image};
use contract::{AppId, DeploymentId, Fault, OrganizationId, quotas::Quota};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How many of the images that served a service last stay, for a rollback without a build.
const STAY: usize = 5;
/// How many stay where there is no room for more.
const STAY_WITHOUT_ROOM: usize = 1;
/// A record may not name a younger image yet.
const YOUNG: Duration = Duration::from_secs(600);
/// What builds leave for the next ones goes after this time, so that base images are fetched anew.
const CACHES_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes the images that nothing needs, and unused build cache, from an engine.
pub async fn prune(world: &World, host: &Host) -> Result<(), EngineError> {
    let engine = &host.engine;
    let now = world.ports.clock.now();
    let labels = names::of_installation(&world.ports.site.installation);
    let unread = |e: Fault| EngineError::Unreachable(e.to_string());
    let kept = pinned(world).map_err(unread)?;
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
    if host.id.is_some() {
        // Images are built at the engine of the settings, and only copied to others.
        return Ok(());
    }
    for (app, bytes) in changed(world, &engine.images(&labels).await?).map_err(unread)? {
        quotas::tell(world, app, bytes).await;
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

/// The apps whose images have another size than was measured before, and that size.
fn changed(world: &World, images: &[Image]) -> Result<Vec<(AppId, u64)>, Fault> {
    let mut now: BTreeMap<AppId, u64> = BTreeMap::new();
    for image in images {
        if let Some(app) = image.labels.get(APP).and_then(|app| app.parse().ok()) {
            *now.entry(app).or_default() += image.size;
        }
    }
    for app in world.store.newest::<Apps>(&AppIndex::HasImages, None).keys() {
        now.entry(app?).or_default();
    }
    let mut changed = Vec::new();
    for (app, bytes) in now {
        if world.store.get::<Apps>(&app)?.is_some_and(|found| found.image_bytes != bytes) {
            changed.push((app, bytes));
        }
    }
    Ok(changed)
}

/// The images of the deployments that served each service last, and of those in its queue.
fn pinned(world: &World) -> Result<BTreeSet<String>, Fault> {
    let (store, mut pinned, mut known) = (&world.store, BTreeSet::new(), BTreeMap::new());
    for found in store.newest::<Instances>(&InstanceIndex::All, None) {
        let (id, instance) = found?;
        let most = match Instances::organization(&id, &instance.state, store)? {
            Some(organization) if !has_room(world, &mut known, organization)? => STAY_WITHOUT_ROOM,
            _ => STAY,
        };
        for service in DeploymentHistory::keys(id) {
            let served = store.get_or_empty::<DeploymentHistory>(&service)?;
            let mut stay = BTreeSet::new();
            for id in served.latest.iter().copied() {
                if stay.len() == most {
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

/// Whether an organization may have more images, which is `known` if it was asked before.
fn has_room(
    world: &World,
    known: &mut BTreeMap<OrganizationId, bool>,
    organization: OrganizationId,
) -> Result<bool, Fault> {
    if let Some(has_room) = known.get(&organization) {
        return Ok(*has_room);
    }
    let has_room = usage::left(world, organization, Quota::ImageBytes)? != Some(0);
    known.insert(organization, has_room);
    Ok(has_room)
}

fn image_of(store: &Store, id: DeploymentId) -> Result<Option<String>, Fault> {
    let found = store.get::<Deployments>(&id)?;
    Ok(found.and_then(|found| found.deployment.image_ref.clone()))
}
