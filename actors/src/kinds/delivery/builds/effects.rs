//! Performs the effects of a build.

use super::{
    ci::{self, Destination, Workflow},
    log,
    rules::{BuildPlace, BuildPlan, Builds, Effect, LEASE, Outcome, State},
};
use crate::{
    kinds::{
        delivery::{
            artifacts::{ArtifactIndex, Artifacts},
            repositories::{self, CiAccess},
        },
        world::World,
    },
    ports::{
        NotDone,
        ci::{Central, OpenedRepository},
        sources::{GitCredential, SourceError},
    },
    runtime::resource::Retry,
};
use contract::{
    ArtifactId, BuildId, Fault,
    artifacts::ArtifactState,
    builds::Build,
    repositories::{Finding, RepositoryMode, Severity},
    text::GitRef,
};
use repository::{Recipe, Report};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// The pause between two batches of the removal of a log.
const NEXT_BATCH: Duration = Duration::from_millis(100);

pub(super) async fn perform(
    effect: Effect,
    id: BuildId,
    kept: Snapshot<Builds>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Plan => plan(&world, id, &kept).await,
        Effect::FindOut => find_out(&world, id, &kept),
        Effect::Forget => {
            let is_gone = log::forget(&world, id).await?;
            if !is_gone {
                world.ports.clock.sleep(NEXT_BATCH).await;
            }
            Ok(Outcome::Forgotten(is_gone))
        }
        Effect::Dispatch => ci::dispatch(&world, id, &kept).await,
        Effect::Find => ci::find(&world, &kept).await,
        Effect::Follow => ci::follow(&world, &kept).await,
        Effect::CancelRun => ci::cancel(&world, &kept).await,
    }
}

/// Reads the repository at the commit that the build will have.
async fn plan(world: &World, id: BuildId, state: &State) -> Result<Outcome, Retry> {
    let build = &state.build;
    let wanted = build.git_ref.as_ref().and_then(|git_ref| git_ref.parse::<GitRef>().ok());
    let (remote, access) = match repositories::remote_of_app(world, build.app_id, wanted).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Outcome::Impossible("the app has no repository any more".into())),
        Err(NotDone::Refused(why)) => return Ok(Outcome::Impossible(why)),
        Err(NotDone::Unreachable(why)) => return Err(wait(world, id, why)),
    };
    let found = match world.ports.sources.inspect(&remote, repositories::READ_WITHIN).await {
        Ok(found) => found,
        Err(SourceError::Refused(why)) => return Ok(Outcome::Impossible(access.explained(why))),
        Err(SourceError::Unreachable(why)) => return Err(wait(world, id, why)),
    };
    let report = repository::check(&found.files);
    let is_commit = found.commit == found.git_ref;
    let to = match own_ci(state.place, &report, access.ci, is_commit) {
        // No job of the operator's workflow gets a deploy key.
        Ok(None) if state.place != BuildPlace::Runner && remote.url.ssh().is_none() => {
            central(world, id, build).await?
        }
        to => to,
    };
    let recipe = Recipe::of(&found.files, build.platform, build.profile.as_str());
    let (to, Recipe { command, artifact }) = match to.and_then(|to| Ok((to, recipe?))) {
        Ok(planned) => planned,
        Err(why) => return Ok(Outcome::Impossible(format!("{why} (commit {})", found.commit))),
    };
    // The author of the command may have written the token into it.
    let said = match &remote.credential {
        Some(GitCredential::Token(token)) => command.replace(token.as_str(), "••••"),
        _ => command.clone(),
    };
    log::say(world, id, format!("Commit {} of {}: {said}", found.commit, found.git_ref));
    let plan = BuildPlan {
        url: remote.url,
        mode: report.mode,
        git_ref: found.git_ref,
        commit: found.commit,
        command,
        artifact,
    };
    Ok(Outcome::Planned(Box::new(plan), to))
}

/// The CI of the repository, if the build is to run there.
fn own_ci(
    place: BuildPlace,
    report: &Report,
    ci: Option<CiAccess>,
    is_commit: bool,
) -> Result<Option<Destination>, String> {
    let is_managed = report.mode == RepositoryMode::Managed;
    let CiAccess { repository, now, .. } = match (place, ci) {
        (BuildPlace::Hosted | BuildPlace::Runner, _) | (BuildPlace::Any, None) => return Ok(None),
        (BuildPlace::Any, Some(_)) if !is_managed || is_commit => return Ok(None),
        (BuildPlace::Ci, None) => return Err(NO_CI.into()),
        (BuildPlace::Ci, Some(_)) if is_commit => {
            return Err("a CI builds a branch or a tag, not a commit".into());
        }
        (BuildPlace::Any | BuildPlace::Ci, Some(ci)) => ci,
    };
    // Also the files that are missing are errors: the repository is meant to be managed.
    let error = report.findings.iter().find(|finding| finding.severity == Severity::Error);
    match error {
        Some(Finding { path, line, problem, .. }) => {
            let place = path.as_deref().unwrap_or_default();
            let line = line.map_or_else(String::new, |line| format!(" line {line}"));
            Err(format!("{place}{line}: {problem}"))
        }
        None if !is_managed => Err("the repository is not managed".into()),
        None => Ok(Some(Destination { workflow: Workflow::Own, repository, now })),
    }
}

/// The CI of the operator's repository, if there is one. Its job acts for the person who triggered
/// the build, so there must be one.
async fn central(
    world: &World,
    id: BuildId,
    build: &Build,
) -> Result<Result<Option<Destination>, String>, Retry> {
    let ci = world.ports.ci.as_deref().filter(|_| build.triggered_by.is_some());
    let central = ci.and_then(|ci| Some((ci, ci.central()?)));
    let Some((ci, Central { repository, .. })) = central else { return Ok(Ok(None)) };
    let repository = repository.clone();
    match ci.open(&repository).await.map_err(NotDone::from) {
        Ok(Some(OpenedRepository { now, .. })) => {
            Ok(Ok(Some(Destination { workflow: Workflow::Central, repository, now })))
        }
        Ok(None) => {
            Ok(Err(format!("the GitHub App of this service is not installed for {repository}")))
        }
        Err(NotDone::Refused(why)) => Ok(Err(why)),
        Err(NotDone::Unreachable(why)) => Err(wait(world, id, why)),
    }
}

/// Why no build can run in the CI of a repository that the service may only read.
pub(super) const NO_CI: &str = "the service cannot begin runs in the CI of this repository: install \
     its GitHub App there, name the app and the repository in .svc/config.json of the default \
     branch, and check it again (svc repo check)";

fn wait(world: &World, id: BuildId, why: String) -> Retry {
    log::say(world, id, format!("Waiting for the repository: {why}"));
    Retry(why)
}

/// The verified artifact of a build. One whose origin only its uploader says is the last choice.
pub(super) fn verified_artifact(world: &World, build: &Build) -> Result<Option<ArtifactId>, Fault> {
    let found = of_build(world, build)?.into_iter().find(|(_, s)| *s == ArtifactState::Verified);
    Ok(found.map(|(id, _)| id))
}

/// The newest artifacts of a build, proven ones first.
fn of_build(world: &World, build: &Build) -> Result<Vec<(ArtifactId, ArtifactState)>, Fault> {
    let mut found = Vec::new();
    let made = ArtifactIndex::OfBuild { build: build.id };
    for artifact in world.store.newest::<Artifacts>(&made, None).take(10) {
        let (key, seen) = artifact?;
        let artifact = &seen.state.artifact;
        if artifact.platform == build.platform {
            found.push((key, (artifact.provenance.claimed, artifact.state)));
        }
    }
    found.sort_by_key(|(_, (claimed, _))| *claimed);
    Ok(found.into_iter().map(|(key, (_, state))| (key, state)).collect())
}

/// A runner that uploaded the artifact has done its work, even if it cannot say so any more.
fn find_out(world: &World, id: BuildId, state: &State) -> Result<Outcome, Retry> {
    for (artifact, state) in of_build(world, &state.build)? {
        match state {
            ArtifactState::Verified => return Ok(Outcome::Made(artifact)),
            ArtifactState::Verifying => return Ok(Outcome::Patience),
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
