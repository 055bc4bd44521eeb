//! Provides an image that is built from a recipe: finds it on this machine, or has a job build it.

use super::{
    from_source::{JOB, Order, RECIPE, Steps},
    rules::{ImageBuildClaim, ImageBuilds, Source, State},
};
use crate::{
    kinds::{
        hosting::{
            engines::{Host, copy_image},
            names,
        },
        world::World,
    },
    ports::{
        NotDone,
        recipes::{Recipe, repository},
    },
};
use bytes::Bytes;
use container_engine::{EngineError, Labels, Secrets};
use contract::{
    Fault, ImageId, JobId, VersionName,
    image_builds::{BuildJob, BuildJobState},
    text::Slug,
};

/// Where an image is.
#[derive(Debug)]
pub enum Availability {
    /// At the engine that needs it, under this reference.
    Here(String),
    /// This job builds it.
    Building(BuildJob),
}

/// The image of a version from a recipe, at an engine. If no engine has it, a job builds it: the one that is at
/// work for this version already, or a new one. `awaited` is the job that the caller waits for: if it failed, so
/// does this.
pub async fn provide(
    world: &World,
    host: &Host,
    (image, version): (ImageId, &VersionName),
    recipe: &Slug,
    awaited: Option<JobId>,
) -> Result<Availability, NotDone> {
    let label = &recipe_of(world, recipe).map_err(NotDone::Refused)?.label;
    let mut wanted = names::of_installation(&world.ports.site.installation);
    wanted.insert(RECIPE.into(), label.clone());
    if let Some(reference) = find(world, host, &wanted).await? {
        return Ok(Availability::Here(reference));
    }
    if let Some(job) = awaited.map(|job| job_of(world, job)).transpose()?.flatten() {
        match job.state {
            BuildJobState::Queued | BuildJobState::Building | BuildJobState::Pushing => {
                return Ok(Availability::Building(job));
            }
            BuildJobState::Failed => {
                let why = job.error.unwrap_or_default();
                let why = format!("its image was not built, see the log of job {}: {why}", job.id);
                return Err(NotDone::Refused(why));
            }
            BuildJobState::Cancelled => {
                return Err(NotDone::Refused("the build of its image was cancelled".into()));
            }
            // The image was removed since, or is of another recipe.
            BuildJobState::Succeeded => {}
        }
    }
    // Only who has the turn begins a build. So one that was not at work when it was looked for has either
    // made the image already, or begins after this one.
    let _turn = world.creation(image).await.map_err(unknown)?;
    let claim = ImageBuildClaim::Version { image, version: version.clone() };
    if let Some((_, found)) = world.store.held_by(&claim).map_err(unknown)? {
        return Ok(Availability::Building(found.state.job.clone()));
    }
    if let Some(reference) = find(world, host, &wanted).await? {
        return Ok(Availability::Here(reference));
    }
    begin(world, image, version, recipe).await
}

/// The image with these labels at an engine, which gets it if the one that builds images has it.
async fn find(world: &World, host: &Host, wanted: &Labels) -> Result<Option<String>, EngineError> {
    if let Some(found) = host.engine.images(wanted).await?.into_iter().next() {
        return Ok(Some(found.id));
    }
    if host.id.is_none() {
        return Ok(None);
    }
    let Some(built) = world.hosts.own().engine.images(wanted).await?.into_iter().next() else {
        return Ok(None);
    };
    let is_here = copy_image(world, host, &built.id).await?;
    Ok(is_here.then_some(built.id))
}

async fn begin(
    world: &World,
    image: ImageId,
    version: &VersionName,
    recipe: &Slug,
) -> Result<Availability, NotDone> {
    let now = world.ports.clock.now();
    let id: JobId = world.ports.random.id(now);
    let source = Source::Recipe { recipe: recipe.clone() };
    let limit = world.ports.site.image_build_limit;
    let state = State::new(id, (image, version.clone()), source, limit, now);
    let job = state.job.clone();
    match world.to::<ImageBuilds>(id).create(state).await {
        Ok(_) => Ok(Availability::Building(job)),
        // Somebody called for it at the same moment.
        Err(Fault::Exists(_)) => {
            Err(NotDone::Unreachable("a build of this image has just begun".into()))
        }
        Err(fault) => Err(unknown(fault)),
    }
}

fn job_of(world: &World, id: JobId) -> Result<Option<BuildJob>, NotDone> {
    let found = world.store.get::<ImageBuilds>(&id).map_err(unknown)?;
    Ok(found.map(|found| found.state.job.clone()))
}

fn unknown(fault: Fault) -> NotDone {
    NotDone::Unreachable(fault.to_string())
}

fn recipe_of<'a>(world: &'a World, name: &Slug) -> Result<&'a Recipe, String> {
    let missing = || format!("this version of the service has no recipe {name}");
    world.ports.recipes.get(name).ok_or_else(missing)
}

/// The build of a recipe, and its files. The base image may be one that only this machine has: the
/// operator chose it.
pub(super) fn order(world: &World, id: JobId, name: &Slug) -> Result<(Order, Bytes), String> {
    let (recipes, recipe) = (&world.ports.recipes, recipe_of(world, name)?);
    let label = &recipe.label;
    let npm_registry = recipes.npm_registry.clone();
    let order = Order {
        // Several installations may share the engine.
        tag: format!("{}:{label}-{}", repository(name), world.ports.site.installation),
        dockerfile: "Dockerfile".into(),
        args: npm_registry.map(|url| ("npm_config_registry".to_owned(), url)).into_iter().collect(),
        secrets: Secrets::default(),
        labels: Labels::from([(JOB.into(), id.to_string()), (RECIPE.into(), label.clone())]),
        steps: Steps::Programs {
            owner: "recipes".to_owned(),
            base: Some(recipes.base_image.clone()),
        },
    };
    Ok((order, recipe.context.clone()))
}
