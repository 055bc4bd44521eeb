//! The image of a service: what provides it, and what is known against it.

use super::{record::Instance, service::ServiceImage};
use crate::{
    kinds::{
        hosting::{
            engines::{Host, copy_image},
            image_builds::from_recipe::{self, Availability},
            images,
        },
        world::World,
    },
    ports::NotDone,
};
use contract::instances::Outdated;
use std::collections::BTreeSet;

/// What members can do when the image that a deployment built is gone.
const BUILT: &str = "the image that its deployment built is gone from this machine: deploy the code again, \
    with `svc deploy` or `triggerDeployment`";

impl ServiceImage {
    /// What is known against the version. Nothing is known of an image that a deployment built.
    pub fn outdated(&self, world: &World) -> Option<Outdated> {
        images::outdated(world, self.image_id?, &self.version)
    }
}

impl Instance {
    /// The security advisories that concern the images of its live revisions.
    pub fn advisories(&self, world: &World) -> BTreeSet<String> {
        let outdated =
            self.services.iter().filter_map(|service| service.live.image.outdated(world));
        outdated.flat_map(|known| known.advisories).map(|advisory| advisory.id).collect()
    }
}

/// Ensures that an engine has the image: pulls it, has a job build it from its recipe, or copies it from the engine
/// that built it.
pub async fn provide(
    world: &World,
    host: &Host,
    image: &ServiceImage,
) -> Result<Availability, NotDone> {
    let (engine, registries) = (&host.engine, &world.ports.registries);
    if let Some(id) = image.image_id
        && let Some(recipe) = images::recipe_of(&world.store, id, &image.version)?
    {
        // An image of an earlier recipe serves for as long as it is there.
        if let Some(reference) = &image.reference
            && engine.image(reference).await?.is_some()
        {
            return Ok(Availability::Here(reference.clone()));
        }
        return from_recipe::provide(world, host, (id, &image.version), &recipe, image.build).await;
    }
    let reference = match (&image.reference, image.image_id) {
        (Some(reference), Some(_)) => reference.clone(),
        (Some(reference), None) => {
            // No registry has it.
            if engine.image(reference).await?.is_some()
                || copy_image(world, host, reference).await?
            {
                return Ok(Availability::Here(reference.clone()));
            }
            return Err(NotDone::Refused(BUILT.into()));
        }
        (None, Some(id)) => images::resolve_digest(world, id, &image.version).await?,
        (None, None) => {
            let why = format!("no deployment built the image {} {}", image.name, image.version);
            return Err(NotDone::Refused(why));
        }
    };
    engine.ensure_image(&reference, registries.login(&reference)).await?;
    Ok(Availability::Here(reference))
}
