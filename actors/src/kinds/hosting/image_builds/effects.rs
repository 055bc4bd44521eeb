//! The effects of image builds: wait for a turn, build, push.

use super::{
    from_recipe,
    from_source::{self, Files, JOB, Order, Steps, owner},
    progress::Progress,
    queue::Ticket,
    rules::{Command, Effect, ImageBuilds, Outcome, Source, State},
};
use crate::{
    kinds::{
        hosting::{
            images::{self, Images},
            progress_log::{self, say},
        },
        world::World,
    },
    ports::{
        NotDone,
        sources::{Remote, Revision},
    },
    runtime::{resource::Retry, turns::Tenant},
};
use container_engine::{EngineError, Labels, Secrets};
use contract::{
    Fault, Id, JobId,
    deployments::StepName,
    image_builds::BuildSource,
    images::{DockerImage, DockerImageVersion, ImageVersionState},
    text::{ImageDigest, ImageTag},
};
use std::{cell::RefCell, sync::Arc, time::Duration};
use store::Snapshot;

/// How often a waiting build asks for its turn.
const POLL: Duration = Duration::from_millis(500);

pub(super) async fn perform(
    effect: Effect,
    id: JobId,
    kept: Snapshot<ImageBuilds>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::AwaitTurn => {
            while !world.builds.is_turn(ticket(id), world.ports.clock.now())? {
                world.ports.clock.sleep(POLL).await;
            }
            Ok(Outcome::Turn)
        }
        Effect::Build => build(id, &kept.state, &world).await,
        Effect::Push => push(id, &kept.state, &world).await,
        Effect::Forget => {
            let is_gone = progress_log::forget(&world, id).await?;
            if !is_gone {
                world.ports.clock.sleep(POLL).await;
            }
            Ok(Outcome::Forgotten(is_gone))
        }
    }
}

/// Registered images and recipes serve all tenants.
fn ticket(id: JobId) -> Ticket {
    Ticket { id: id.unique(), tenant: Tenant::Service, organization: None }
}

/// The registered image, and the repository and tag of the version to build. `None`: the image was
/// deleted.
fn name(state: &State, world: &World) -> Result<Option<(DockerImage, String, ImageTag)>, Retry> {
    let found = world.store.get::<Images>(&state.job.image_id)?;
    let Some(found) = found else { return Ok(None) };
    let image = found.state.clone();
    // The handler refuses a version that cannot be a tag.
    let tag: ImageTag = state.job.version.as_str().parse().map_err(Retry)?;
    let repository = world.ports.registries.repository(&image.repository).to_owned();
    Ok(Some((image, repository, tag)))
}

async fn build(id: JobId, state: &State, world: &World) -> Result<Outcome, Retry> {
    match &state.source {
        Source::Recipe { recipe } => match from_recipe::order(world, id, recipe) {
            Ok((order, archive)) => {
                run(id, Files::Archive(archive), order, Outcome::Ready, world).await
            }
            Err(why) => Ok(failed(id, why, world)),
        },
        Source::Repository(source) => {
            let Some((_, repository, tag)) = name(state, world)? else {
                return Ok(Outcome::Failed("the image was deleted".into()));
            };
            let revision = Revision::of(source.git.git_ref.clone());
            let tenant = Tenant::Service;
            let url = source.git.url.clone();
            let remote = Remote { tenant, url, revision, credential: None };
            let order = order(id, state, source, format!("{repository}:{tag}"));
            run(id, Files::Repository(&remote), order, Outcome::Built, world).await
        }
    }
}

fn order(id: JobId, state: &State, source: &BuildSource, tag: String) -> Order {
    let dockerfile = source.dockerfile.clone().or_else(|| source.git.dockerfile.clone());
    Order {
        tag,
        dockerfile: dockerfile.map_or("Dockerfile".into(), String::from),
        args: source.build_args.to_texts(),
        secrets: Secrets::default(),
        labels: Labels::from([(JOB.into(), id.to_string())]),
        steps: Steps::Programs { owner: owner(state.job.image_id), base: None },
    }
}

async fn run(
    id: JobId,
    files: Files<'_>,
    order: Order,
    done: Outcome,
    world: &World,
) -> Result<Outcome, Retry> {
    let steps = RefCell::new(Progress::default());
    let said = async |line: String| {
        let reached = steps.borrow_mut().reached(&line);
        say(world, id, StepName::Build, [line]);
        if let Some(percent) = reached {
            // If the owner is busy, this step is lost; the next step reports the progress again.
            let _ = world.to::<ImageBuilds>(id).ask(Command::Reached(percent)).await;
        }
    };
    match from_source::build(world, ticket(id), files, order, said).await {
        Ok(_) => Ok(done),
        Err(NotDone::Refused(why)) => Ok(failed(id, why, world)),
        Err(NotDone::Unreachable(why)) => Err(Retry(why)),
    }
}

fn failed(id: JobId, why: String, world: &World) -> Outcome {
    say(world, id, StepName::Build, [format!("failed: {why}")]);
    Outcome::Failed(why)
}

async fn push(id: JobId, state: &State, world: &World) -> Result<Outcome, Retry> {
    let Some((image, repository, tag)) = name(state, world)? else {
        return Ok(Outcome::Failed("the image was deleted".into()));
    };
    let reference = format!("{repository}:{tag}");
    say(world, id, StepName::Build, [format!("pushing {reference}")]);
    let login = world.ports.registries.login(&reference);
    let digest = match world.hosts.own().engine.push(&repository, tag.as_str(), login).await {
        Ok(digest) => digest,
        Err(EngineError::Unreachable(why)) => return Err(Retry(why)),
        Err(e) => return Ok(Outcome::Failed(e.to_string())),
    };
    let digest: ImageDigest = digest.parse().map_err(Retry)?;
    let version = DockerImageVersion {
        version: state.job.version.clone(),
        tag: Some(tag),
        digest: Some(digest.clone()),
        recipe: None,
        state: ImageVersionState::Active,
        deprecation_reason: None,
        advisories: Vec::new(),
        created_at: world.ports.clock.now(),
    };
    let command = images::Command::AddVersion(Box::new(version));
    match world.to::<Images>(image.id).ask(command).await {
        Ok(_) => Ok(Outcome::Pushed(digest)),
        Err(Fault::Exists(_)) => already(state, &digest, world),
        Err(Fault::NotFound(_)) => Ok(Outcome::Failed("the image was deleted".into())),
        Err(fault) => Err(fault.into()),
    }
}

/// The version exists already. The same digest means that this build added it before a crash.
fn already(state: &State, digest: &ImageDigest, world: &World) -> Result<Outcome, Retry> {
    let Some((image, ..)) = name(state, world)? else {
        return Ok(Outcome::Failed("the image was deleted".into()));
    };
    let known = image.versions.iter().find(|known| known.version == state.job.version);
    let same = known.is_some_and(|known| known.digest.as_ref() == Some(digest));
    Ok(if same {
        Outcome::Pushed(digest.clone())
    } else {
        Outcome::Failed("somebody else added this version meanwhile".into())
    })
}
