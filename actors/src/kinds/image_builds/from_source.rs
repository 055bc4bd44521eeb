//! Building an image of a git repository, on the container engine.

use crate::{
    kinds::instances::names,
    ports::{Checkout, SourceError},
    world::World,
};
use container_engine::{BuildEvent, BuildSpec, EngineError, Labels};
use contract::deployments::GitSource;
use futures_util::{StreamExt, TryStreamExt};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use ulid::Ulid;

/// Bytes of memory that one step of a build may use.
pub const MEMORY: u64 = 2 << 30;
/// How long the repository may take.
const CHECKOUT_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Lines of a build that are kept: a step that writes for ever must not fill the store.
const MOST_LINES: u32 = 10_000;

/// The app that an image was built for.
pub const APP: &str = "svc.app";
/// The deployment that built an image.
pub const DEPLOYMENT: &str = "svc.deployment";
/// The build of a registered image that made an image.
pub const JOB: &str = "svc.job";

/// Every label of ours. The builder sets each of them in a step of its own, after those of the
/// Dockerfile.
pub const LABELS: [&str; 8] = [
    names::INSTALLATION,
    names::INSTANCE,
    names::BACKUP,
    names::ROLE,
    names::GENERATION,
    APP,
    DEPLOYMENT,
    JOB,
];

/// What an image carries: the labels of its build, and none of ours that a Dockerfile or a base
/// image says of another.
fn labels_of(world: &World, own: Labels) -> Labels {
    let mut labels: Labels = LABELS.map(|label| (label.to_owned(), String::new())).into();
    labels.extend(names::of_installation(&world.ports.site.installation));
    labels.extend(own);
    labels
}

/// Why there is no image.
pub enum NotBuilt {
    /// It will not be there, however often it is tried.
    Refused(String),
    /// Something that is needed does not answer.
    Unreachable(String),
}

impl From<EngineError> for NotBuilt {
    fn from(e: EngineError) -> Self {
        match e {
            EngineError::Unreachable(why) => NotBuilt::Unreachable(why),
            e => NotBuilt::Refused(e.to_string()),
        }
    }
}

/// Builds the image once it may, and says how it goes; its id. The labels are those of this build alone: an
/// image that has them was built just before a crash, and is not built again.
pub async fn build(
    world: &World,
    id: Ulid,
    git: &GitSource,
    spec: BuildSpec,
    say: impl AsyncFn(String),
) -> Result<String, NotBuilt> {
    let closed = || NotBuilt::Unreachable("nothing is built any more".into());
    let _slot = world.builds.begin(id).await.ok_or_else(closed)?;
    let engine = &world.ports.engine;
    let spec = BuildSpec { labels: labels_of(world, spec.labels), ..spec };
    if let Some(image) = engine.images(&spec.labels).await?.into_iter().next() {
        return Ok(image.id);
    }
    say(format!("fetching {}", git.url)).await;
    let fetched = world.ports.sources.checkout(git, CHECKOUT_WITHIN).await;
    let Checkout { commit, context } = match fetched {
        Ok(checkout) => checkout,
        // An unreachable host is for people to look at: it may never have existed.
        Err(SourceError::Refused(why) | SourceError::Unreachable(why)) => {
            return Err(NotBuilt::Refused(why));
        }
    };
    say(format!("building commit {commit}")).await;
    let broken = Arc::new(OnceLock::new());
    let seen = broken.clone();
    let context = context.inspect_err(move |e| {
        let _ = seen.set(e.to_string());
    });
    // An engine that was sent half of the files only says that it got half of them.
    let meant = |e: EngineError| match broken.get() {
        Some(why) => NotBuilt::Refused(format!("the repository was not sent whole: {why}")),
        None => NotBuilt::from(e),
    };
    let mut events = engine.build(spec, context.boxed()).await.map_err(meant)?;
    let mut left = MOST_LINES;
    while let Some(event) = events.next().await {
        match event.map_err(meant)? {
            BuildEvent::Line(line) => {
                match left {
                    0 => {}
                    1 => say("the rest of the output is not kept".into()).await,
                    _ => say(line).await,
                }
                left = left.saturating_sub(1);
            }
            BuildEvent::Built(built) => return Ok(built.image),
        }
    }
    Err(NotBuilt::Unreachable("the build was cut off".into()))
}
