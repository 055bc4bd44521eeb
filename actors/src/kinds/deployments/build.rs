//! Having the image of a deployment here: pulled, built of a repository, or there already.

use super::rules::State;
use crate::{
    kinds::{
        image_builds::from_source::{self, APP, DEPLOYMENT, MEMORY, NotBuilt},
        images,
    },
    runtime::progress_log::say,
    world::World,
};
use container_engine::{BuildSpec, Labels};
use contract::{
    AppId, DeploymentId, Id,
    deployments::{GitSource, StepName},
};
use std::collections::BTreeMap;

/// What images that deployments built for an app are called.
pub fn repository(app: AppId) -> String {
    format!("svc/{}", app.to_string().trim_start_matches("app_").to_ascii_lowercase())
}

/// Whether repositories of users may be built here.
pub(super) fn allowed(world: &World) -> Result<(), &'static str> {
    if world.ports.site.builds_repositories {
        return Ok(());
    }
    Err(
        "this installation builds no repositories: it is reachable from other machines, and builds \
         are not isolated from its own; an operator can allow them with SVC_TRUST_BUILDS=true",
    )
}

/// The reference of the image, which is on this machine.
pub(super) async fn image(
    world: &World,
    id: DeploymentId,
    state: &State,
) -> Result<String, NotBuilt> {
    let source = &state.image;
    let reference = match (&source.reference, source.image_id, &state.deployment.source.git) {
        (Some(reference), _, _) => reference.clone(),
        (None, Some(image), _) => images::resolve_digest(world, image, &source.version).await?,
        (None, None, Some(git)) => return of_git(world, id, state.deployment.app_id, git).await,
        (None, None, None) => return Err(NotBuilt::Refused("it names no image".into())),
    };
    say(world, id, StepName::Build, [format!("having {reference} here")]);
    let login = world.ports.registries.login(&reference);
    world.ports.engine.ensure_image(&reference, login).await?;
    Ok(reference)
}

async fn of_git(
    world: &World,
    id: DeploymentId,
    app: AppId,
    git: &GitSource,
) -> Result<String, NotBuilt> {
    // It may have been asked for when they still were.
    allowed(world).map_err(|why| NotBuilt::Refused(why.into()))?;
    let labels = Labels::from([(APP.into(), app.to_string()), (DEPLOYMENT.into(), id.to_string())]);
    let tag = id.to_string().trim_start_matches("dep_").to_ascii_lowercase();
    let spec = BuildSpec {
        tag: format!("{}:{tag}", repository(app)),
        dockerfile: git.dockerfile.as_ref().map_or("Dockerfile".into(), ToString::to_string),
        args: BTreeMap::new(),
        labels,
        // Images of others are on this machine too.
        pull: true,
        memory: MEMORY,
    };
    let said = async |line| say(world, id, StepName::Build, [line]);
    from_source::build(world, id.unique(), git, spec, said).await
}
