//! Builds an image from a git repository, a folder or an archive, on the container engine.

use super::queue::Ticket;
use crate::{
    kinds::{hosting::names, world::World},
    ports::{
        NotDone,
        sources::{Fetched, Remote, SourceError},
    },
    runtime::turns::NoTurn,
};
use bytes::Bytes;
use container_engine::{BuildEvent, BuildSpec, EngineError, Labels};
use contract::{AppId, Sha256};
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use repository::folder::FolderKind;
use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Bytes of memory that one step of a build may use.
pub const MEMORY: u64 = 2 << 30;
/// How long it may take to fetch the repository.
const FETCHED_WITHIN: Duration = Duration::from_secs(5 * 60);

/// How many lines of a build are kept. A step that writes for ever must not fill the store.
const MOST_LINES: u32 = 10_000;

/// Label: the app that an image was built for.
pub const APP: &str = "svc.app";
/// Label: the deployment that built an image.
pub const DEPLOYMENT: &str = "svc.deployment";
/// Label: the image build that made an image.
pub const JOB: &str = "svc.job";

/// Label: the recipe that an image was built from.
pub const RECIPE: &str = "svc.recipe";

/// All labels of this service. The builder sets each of them in a separate step, after the steps of
/// the Dockerfile.
pub const LABELS: [&str; 9] = [
    names::INSTALLATION,
    names::INSTANCE,
    names::BACKUP,
    names::ROLE,
    names::GENERATION,
    APP,
    DEPLOYMENT,
    JOB,
    RECIPE,
];

/// The labels of an image. All other labels of this service are set to empty text, so that a
/// Dockerfile or base image cannot claim them.
fn labels_of(world: &World, own: Labels) -> Labels {
    let mut labels: Labels = LABELS.map(|label| (label.to_owned(), String::new())).into();
    labels.extend(names::of_installation(&world.ports.site.installation));
    labels.extend(own);
    labels
}

/// The files of a build.
pub enum Files<'a> {
    /// A commit of a repository.
    Repository(&'a Remote),
    /// The folder of an app with this hash.
    Folder(AppId, &'a Sha256, FolderKind),
    /// A tar archive.
    Archive(Bytes),
}

/// Waits for a turn, builds the image, and returns its id. `say` takes the lines of the build. The
/// labels of `spec` identify this build: an image that carries them was built before a crash, and
/// is not built again.
pub async fn build(
    world: &World,
    ticket: Ticket,
    files: Files<'_>,
    spec: BuildSpec,
    say: impl AsyncFn(String),
) -> Result<String, NotDone> {
    let refused = |why: NoTurn| NotDone::Unreachable(why.to_string());
    let _turn = world.builds.begin(ticket, &world.ports.clock).await.map_err(refused)?;
    let engine = &world.ports.engine;
    let spec = BuildSpec { labels: labels_of(world, spec.labels), ..spec };
    if let Some(image) = engine.images(&spec.labels).await?.into_iter().next() {
        return Ok(image.id);
    }
    let context = match files {
        Files::Repository(remote) => fetch(world, remote, &spec.dockerfile, &say).await?,
        Files::Folder(app, sha256, kind) => {
            let files = world.ports.folders.context(app, sha256, kind).await;
            files.map_err(|e| NotDone::Refused(e.to_string()))?
        }
        Files::Archive(archive) => stream::iter([Ok(archive)]).boxed(),
    };
    let broken = Arc::new(OnceLock::new());
    let seen = broken.clone();
    let context = context.inspect_err(move |e| {
        let _ = seen.set(e.to_string());
    });
    // If the stream of files breaks, the engine reports only that the archive is incomplete.
    let meant = |e: EngineError| match broken.get() {
        Some(why) => NotDone::Refused(format!("the files were not sent whole: {why}")),
        None => NotDone::from(e),
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
    Err(NotDone::Unreachable("the build was cut off".into()))
}

async fn fetch(
    world: &World,
    remote: &Remote,
    dockerfile: &str,
    say: &impl AsyncFn(String),
) -> Result<BoxStream<'static, io::Result<Bytes>>, NotDone> {
    say(format!("fetching {}", remote.url)).await;
    match world.ports.sources.fetch(remote, dockerfile, FETCHED_WITHIN).await {
        Ok(Fetched { commit, context }) => {
            say(format!("building commit {commit}")).await;
            Ok(context)
        }
        // No retry: an unreachable host may never have existed, so a person has to look.
        Err(SourceError::Refused(why) | SourceError::Unreachable(why)) => {
            Err(NotDone::Refused(why))
        }
    }
}
