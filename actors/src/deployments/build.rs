//! Having the image of a deployment here: pulled, built of a repository, or there already.

use super::{log::say, machine::State};
use crate::{
    images,
    instances::names,
    ports::{Checkout, SourceError},
    world::World,
};
use contract::{
    AppId, DeploymentId,
    deployments::{GitSource, StepName},
};
use engine::{BuildEvent, BuildSpec, EngineError, Labels};
use futures_util::StreamExt;
use std::{collections::BTreeMap, time::Duration};

/// The app that an image was built for.
pub const APP: &str = "svc.app";
/// The deployment that built an image.
pub const DEPLOYMENT: &str = "svc.deployment";

/// Bytes of memory that one step of a build may use.
const MEMORY: u64 = 2 << 30;
/// How long the repository may take.
const CHECKOUT_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Why there is no image.
pub(super) enum NotBuilt {
    /// It will not be there, however often it is tried.
    Refused(String),
    /// Something that is needed does not answer.
    Away(String),
}

impl From<EngineError> for NotBuilt {
    fn from(e: EngineError) -> Self {
        match e {
            EngineError::Away(why) => NotBuilt::Away(why),
            e => NotBuilt::Refused(e.to_string()),
        }
    }
}

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
        (None, Some(image), _) => images::settle(world, image, &source.version).await?,
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
    let engine = &world.ports.engine;
    let mut labels: Labels = names::of_installation(&world.ports.site.installation);
    labels.insert(DEPLOYMENT.into(), id.to_string());
    // A build that came to its end just before a crash is not done again.
    if let Some(image) = engine.images(&labels).await?.into_iter().next() {
        return Ok(image.id);
    }
    labels.insert(APP.into(), app.to_string());
    say(world, id, StepName::Build, [format!("fetching {}", git.url)]);
    let Checkout { commit, context } =
        match world.ports.sources.checkout(git, CHECKOUT_WITHIN).await {
            Ok(checkout) => checkout,
            Err(SourceError::Refused(why)) => return Err(NotBuilt::Refused(why)),
            Err(SourceError::Away(why)) => return Err(NotBuilt::Refused(why)),
        };
    say(world, id, StepName::Build, [format!("building commit {commit}")]);
    let tag = id.to_string().trim_start_matches("dep_").to_ascii_lowercase();
    let spec = BuildSpec {
        tag: format!("{}:{tag}", repository(app)),
        dockerfile: git.dockerfile.as_ref().map_or("Dockerfile".into(), ToString::to_string),
        args: BTreeMap::new(),
        labels,
        memory: MEMORY,
    };
    let mut events = engine.build(spec, context).await?;
    while let Some(event) = events.next().await {
        match event? {
            BuildEvent::Line(line) => say(world, id, StepName::Build, [line]),
            BuildEvent::Built(built) => return Ok(built.image),
        }
    }
    Err(NotBuilt::Away("the build was cut off".into()))
}
