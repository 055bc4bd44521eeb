//! Builds an image from a git repository, a folder or an archive, on the container engine. What users
//! wrote is built behind walls.

use super::{
    masked::Masked,
    queue::Ticket,
    quotas::{self, Meter},
};
use crate::{
    kinds::{hosting::names, world::World},
    ports::{
        NotDone,
        egress::Door,
        sources::{Fetched, Remote, SourceError},
    },
    runtime::turns::NoTurn,
};
use bytes::Bytes;
use container_engine::{
    BASE_IMAGE, BuildEvent, BuildSpec, EngineError, Isolation, Labels, Secrets,
};
use contract::{AppId, Fault, Id, OrganizationId, Sha256};
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use repository::folder::FolderKind;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// How much longer than its owner allows a build could go on.
const LONGER: Duration = Duration::from_secs(60);
/// How long it may take to fetch the repository.
const FETCHED_WITHIN: Duration = Duration::from_secs(5 * 60);

/// How many lines and bytes of a build are kept. A step that writes for ever must not fill the store.
const MOST_LINES: usize = 10_000;
const MOST_BYTES: usize = 4 << 20;

/// Label: the app that an image was built for.
pub const APP: &str = "svc.app";
/// Label: the deployment that built an image.
pub const DEPLOYMENT: &str = "svc.deployment";
/// Label: the image build that made an image.
pub const JOB: &str = "svc.job";

/// Label: the recipe that an image was built from.
pub const RECIPE: &str = "svc.recipe";

/// All labels of this service.
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

/// An image to build.
pub struct Order {
    /// The name of the new image, `repository:tag`.
    pub tag: String,
    /// The path of the Dockerfile in the files.
    pub dockerfile: String,
    pub args: BTreeMap<String, String>,
    /// What the steps read as secrets, if they run programs. The log shows it masked.
    pub secrets: Secrets,
    /// These identify the build: an image that carries them was built before a crash, and is not built
    /// again.
    pub labels: Labels,
    pub steps: Steps,
}

/// What the steps of a build do.
pub enum Steps {
    /// They put files onto an image of this machine, and run nothing. The Dockerfile is the service's.
    Copies {
        /// The image, which the Dockerfile knows as the argument [`BASE_IMAGE`].
        base: String,
    },
    /// They run programs, so the build is isolated.
    Programs {
        /// Builds of the same owner use what earlier ones left.
        owner: String,
        /// An image of this machine, as above. All other base images come from registries.
        base: Option<String>,
    },
}

/// Label: the installation whose isolated builds left this.
const BUILDS: &str = "svc.builds";

/// The labels of what isolated builds leave.
pub fn labels_of_caches(installation: &str) -> Labels {
    Labels::from([(BUILDS.to_owned(), installation.to_owned())])
}

/// An id as the owner of what builds leave.
pub fn owner(id: impl Id) -> String {
    id.to_string().to_ascii_lowercase().replace('_', "-")
}

/// The build for the engine, and the door of an isolated one.
fn specified(
    world: &World,
    organization: Option<OrganizationId>,
    order: Order,
) -> Result<(BuildSpec, Option<Box<dyn Door>>), NotDone> {
    let Order { tag, dockerfile, mut args, secrets, labels, steps } = order;
    let site = &world.ports.site;
    let (isolation, door) = match steps {
        Steps::Copies { base } => {
            args.insert(BASE_IMAGE.to_owned(), base);
            (None, None)
        }
        Steps::Programs { owner, base } => {
            let door = world.ports.egress.open(organization);
            let door = door.map_err(|e| NotDone::Unreachable(e.to_string()))?;
            let isolation = Isolation {
                // Several installations may share the engine.
                owner: format!("{}-{owner}", site.installation),
                base,
                egress: door.folder().to_owned(),
                loopback: door.loopback(),
                cpu_millis: site.build_size.cpu_millis,
                disk: site.build_size.disk,
                // The owner of the build has its limit, and says so in its own words.
                within: site.image_build_limit.max(site.deployment_limit) + LONGER,
                labels: labels_of_caches(&site.installation),
                secrets,
            };
            (Some(isolation), Some(door))
        }
    };
    let labels = labels_of(world, labels);
    let memory = site.build_size.memory;
    Ok((BuildSpec { tag, dockerfile, args, labels, memory, isolation }, door))
}

/// Waits for a turn, builds the image, and returns its id. `say` takes the lines of the build.
pub async fn build(
    world: &World,
    ticket: Ticket,
    files: Files<'_>,
    order: Order,
    say: impl AsyncFn(String),
) -> Result<String, NotDone> {
    let masked = Masked::of(&order.secrets);
    let say = async |line| say(masked.masks(line)).await;
    let built = build_said(world, ticket, files, order, say).await;
    // The last lines of a step are a part of why it failed.
    built.map_err(|not_done| match not_done {
        NotDone::Refused(why) => NotDone::Refused(masked.masks(why)),
        NotDone::Unreachable(why) => NotDone::Unreachable(masked.masks(why)),
    })
}

async fn build_said(
    world: &World,
    ticket: Ticket,
    files: Files<'_>,
    order: Order,
    say: impl AsyncFn(String),
) -> Result<String, NotDone> {
    let organization = ticket.organization;
    let refused = |why: NoTurn| NotDone::Unreachable(why.to_string());
    let _turn = world.builds.begin(ticket, &world.ports.clock).await.map_err(refused)?;
    let engine = &world.hosts.own().engine;
    let (spec, door) = specified(world, organization, order)?;
    if let Some(image) = engine.images(&spec.labels).await?.into_iter().next() {
        return Ok(image.id);
    }
    let not_now = |fault: Fault| NotDone::Refused(fault.to_string());
    world.check_room(0).map_err(not_now)?;
    let mut room = Room { lines: MOST_LINES, bytes: MOST_BYTES, is_over: false };
    if let Some(organization) = organization {
        quotas::check(world, organization).map_err(not_now)?;
        let left = quotas::log_room(world, organization).map_err(not_now)?;
        room.bytes = room.bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
    }
    let mut meter = organization.map(|organization| Meter::begin(world, organization));
    let built = run(world, (spec, door), files, room, &say).await;
    if let (Err(NotDone::Unreachable(_)), Some(meter)) = (&built, &mut meter) {
        meter.set_tried_again();
    }
    built
}

/// Builds the image, behind the door if it is isolated.
async fn run(
    world: &World,
    (spec, door): (BuildSpec, Option<Box<dyn Door>>),
    files: Files<'_>,
    mut room: Room,
    say: &impl AsyncFn(String),
) -> Result<String, NotDone> {
    let context = match files {
        Files::Repository(remote) => fetch(world, remote, &spec.dockerfile, say).await?,
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
    let mut events = world.hosts.own().engine.build(spec, context.boxed()).await.map_err(meant)?;
    while let Some(event) = events.next().await {
        for refused in door.iter().flat_map(|door| door.refused()) {
            say(refused).await;
        }
        match event.map_err(meant)? {
            BuildEvent::Line(line) => {
                if let Some(line) = room.take(line) {
                    say(line).await;
                }
            }
            BuildEvent::Built(built) => return Ok(built.image),
        }
    }
    Err(NotDone::Unreachable("the build was cut off".into()))
}

/// What is left of the log of a build.
struct Room {
    lines: usize,
    bytes: usize,
    is_over: bool,
}

impl Room {
    /// The line, or one that says that no more are kept.
    fn take(&mut self, line: String) -> Option<String> {
        if self.is_over {
            return None;
        }
        if self.lines > 1 && line.len() <= self.bytes {
            self.lines -= 1;
            self.bytes -= line.len();
            return Some(line);
        }
        self.is_over = true;
        Some("the rest of the output is not kept".to_owned())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_ten_thousand_lines_and_four_mebibytes_and_says_that_it_was_cut() {
        for (line, most) in [(String::new(), MOST_LINES), ("x".repeat(1 << 10), MOST_BYTES >> 10)] {
            let mut room = Room { lines: MOST_LINES, bytes: MOST_BYTES, is_over: false };
            let kept: Vec<_> = (0..20_000).filter_map(|_| room.take(line.clone())).collect();
            assert!((most - 1..=most + 1).contains(&kept.len()), "{}", kept.len());
            assert_eq!(kept.last().unwrap(), "the rest of the output is not kept");
        }
    }
}
