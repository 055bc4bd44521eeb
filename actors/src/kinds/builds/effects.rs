//! Performs the effects of a build.

use super::{
    log,
    rules::{Builds, Effect, LEASE, Outcome, Plan, State},
};
use crate::{
    kinds::{
        artifacts::{ArtifactIndex, Artifacts},
        repositories,
    },
    ports::{NotDone, SourceError},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{BuildId, artifacts::ArtifactState, text::GitRef};
use repository::Recipe;
use std::{sync::Arc, time::Duration};

/// How long the host of a repository may take.
const READ_WITHIN: Duration = Duration::from_secs(90);

pub(super) async fn perform(
    effect: Effect,
    id: BuildId,
    kept: Arc<Kept<Builds>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Plan => plan(&world, id, &kept).await,
        Effect::FindOut => find_out(&world, id, &kept),
        Effect::Forget => Ok(Outcome::Forgotten(log::forget(&world, id).await?)),
    }
}

/// Reads the repository at the commit that the build will have.
async fn plan(world: &World, id: BuildId, state: &State) -> Result<Outcome, Retry> {
    let build = &state.build;
    let wanted = build.git_ref.as_ref().and_then(|git_ref| git_ref.parse::<GitRef>().ok());
    let remote = match repositories::remote_of_app(world, build.app_id, wanted) {
        Ok(Some(remote)) => remote,
        Ok(None) => return Ok(Outcome::Impossible("the app has no repository any more".into())),
        Err(NotDone::Refused(why)) => return Ok(Outcome::Impossible(why)),
        Err(NotDone::Unreachable(why)) => return Err(Retry(why)),
    };
    let found = match world.ports.sources.inspect(&remote, READ_WITHIN).await {
        Ok(found) => found,
        Err(SourceError::Refused(why)) => return Ok(Outcome::Impossible(why)),
        Err(SourceError::Unreachable(why)) => {
            log::say(world, id, format!("Waiting for the repository: {why}"));
            return Err(Retry(why));
        }
    };
    let recipe = Recipe::of(&found.files, build.platform, build.profile.as_str());
    let Recipe { command, artifact } = match recipe {
        Ok(recipe) => recipe,
        Err(why) => return Ok(Outcome::Impossible(format!("{why} (commit {})", found.commit))),
    };
    log::say(world, id, format!("Commit {} of {}: {command}", found.commit, found.git_ref));
    Ok(Outcome::Planned(Box::new(Plan {
        url: remote.url,
        mode: repository::check(&found.files).mode,
        git_ref: found.git_ref,
        commit: found.commit,
        command,
        artifact,
    })))
}

/// A runner that uploaded the artifact has done its work, even if it cannot say so any more.
fn find_out(world: &World, id: BuildId, state: &State) -> Result<Outcome, Retry> {
    let made = ArtifactIndex::OfBuild { build: id };
    for key in world.store.newest::<Artifacts>(&made, None, 10)? {
        match world.store.get::<Artifacts>(&key)?.map(|found| found.artifact.state) {
            Some(ArtifactState::Verified) => return Ok(Outcome::Made(key)),
            Some(ArtifactState::Verifying) => return Ok(Outcome::Patience),
            _ => {}
        }
    }
    // No report could come in while the service was away.
    if world.ports.clock.now() < world.started_at + LEASE {
        return Ok(Outcome::Patience);
    }
    let runner = state.build.runner.as_ref().map(|name| name.as_str()).unwrap_or_default();
    log::say(world, id, format!("The runner {runner} fell silent."));
    Ok(Outcome::Lost)
}
