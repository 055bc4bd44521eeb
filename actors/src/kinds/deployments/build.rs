//! Provides the image of a deployment: pulls it, builds it from a repository, or uses what exists.

use super::rules::State;
use crate::{
    kinds::{
        image_builds::from_source::{self, APP, DEPLOYMENT, MEMORY},
        images, repositories,
    },
    ports::NotDone,
    runtime::progress_log::say,
    world::World,
};
use container_engine::{BuildSpec, Labels};
use contract::{
    AppId, DeploymentId, Id,
    deployments::{AppSource, StepName},
};
use std::collections::BTreeMap;

/// The repository name of the images that deployments build for an app.
pub fn repository(app: AppId) -> String {
    format!("svc/{}", app.to_string().trim_start_matches("app_").to_ascii_lowercase())
}

/// Refuses builds of users' repositories where the operator does not allow them.
pub(super) fn allowed(world: &World) -> Result<(), &'static str> {
    if world.ports.site.builds_repositories {
        return Ok(());
    }
    Err(
        "this installation builds no repositories: it is reachable from other machines, and builds \
         are not isolated from its own; an operator can allow them with SVC_TRUST_BUILDS=true",
    )
}

/// Ensures that the image is on this machine, and returns its reference.
pub(super) async fn image(
    world: &World,
    id: DeploymentId,
    state: &State,
) -> Result<String, NotDone> {
    let source = &state.image;
    let reference = match (&source.reference, source.image_id, &state.deployment.source.git) {
        (Some(reference), _, _) => reference.clone(),
        (None, Some(image), _) => images::resolve_digest(world, image, &source.version).await?,
        (None, None, Some(git)) => return of_git(world, id, state.deployment.app_id, git).await,
        (None, None, None) => return Err(NotDone::Refused("it names no image".into())),
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
    git: &AppSource,
) -> Result<String, NotDone> {
    // The operator may have disallowed builds after this one was requested.
    allowed(world).map_err(|why| NotDone::Refused(why.into()))?;
    let remote = repositories::remote(world, app, git).await?;
    let labels = Labels::from([(APP.into(), app.to_string()), (DEPLOYMENT.into(), id.to_string())]);
    let tag = id.to_string().trim_start_matches("dep_").to_ascii_lowercase();
    let spec = BuildSpec {
        tag: format!("{}:{tag}", repository(app)),
        dockerfile: git.dockerfile.as_ref().map_or("Dockerfile".into(), ToString::to_string),
        args: BTreeMap::new(),
        labels,
        // A build must not use images of other apps that are on this machine.
        pull: true,
        memory: MEMORY,
    };
    let said = async |line| say(world, id, StepName::Build, [line]);
    from_source::build(world, id.unique(), &remote, spec, said).await
}
