//! Having the image of a deployment here: pulled, built of a repository, or there already.

use super::rules::State;
use crate::{
    kinds::{
        image_builds::from_source::{self, MEMORY, NotBuilt},
        images,
        instances::names,
    },
    runtime::progress_log::say,
    world::World,
};
use container_engine::{BuildSpec, Labels};
use contract::{
    AppId, DeploymentId,
    deployments::{GitSource, StepName},
};
use std::collections::BTreeMap;

/// The app that an image was built for.
pub const APP: &str = "svc.app";
/// The deployment that built an image.
pub const DEPLOYMENT: &str = "svc.deployment";

/// What images that deployments built for an app are called.
pub fn repository(app: AppId) -> String {
    format!("svc/{}", app.to_string().trim_start_matches("app_").to_ascii_lowercase())
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
    let mut labels: Labels = names::of_installation(&world.ports.site.installation);
    labels.insert(APP.into(), app.to_string());
    labels.insert(DEPLOYMENT.into(), id.to_string());
    let tag = id.to_string().trim_start_matches("dep_").to_ascii_lowercase();
    let spec = BuildSpec {
        tag: format!("{}:{tag}", repository(app)),
        dockerfile: git.dockerfile.as_ref().map_or("Dockerfile".into(), ToString::to_string),
        args: BTreeMap::new(),
        labels,
        memory: MEMORY,
    };
    from_source::build(world, git, spec, |line| say(world, id, StepName::Build, [line])).await
}
