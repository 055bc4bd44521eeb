//! Provides the image of a deployment: pulls it, builds it from a repository, or uses what exists.

use super::rules::State;
use crate::{
    kinds::{
        image_builds::{
            from_recipe::Availability,
            from_source::{self, APP, DEPLOYMENT, Files, MEMORY},
        },
        instances::provide_image,
        repositories,
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
use std::{collections::BTreeMap, time::Duration};

/// The pause before the build of a recipe is looked at again.
const POLL: Duration = Duration::from_secs(1);

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
    if let (None, None, Some(git)) =
        (&state.image.reference, state.image.image_id, &state.deployment.source.git)
    {
        return of_git(world, id, state.deployment.app_id, git).await;
    }
    let mut image = state.image.clone();
    say(world, id, StepName::Build, [format!("having {} {} here", image.name, image.version)]);
    loop {
        match provide_image(world, &image).await? {
            Availability::Here(reference) => return Ok(reference),
            Availability::Building(job) => {
                if image.build.replace(job.id) != Some(job.id) {
                    say(
                        world,
                        id,
                        StepName::Build,
                        ["the image is being built from its recipe".to_owned()],
                    );
                }
                world.ports.clock.sleep(POLL).await;
            }
        }
    }
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
    from_source::build(world, id.unique(), Files::Repository(&remote), spec, said).await
}
