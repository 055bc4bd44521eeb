//! Performs the effects of a build in a CI.

use super::{Run, RunOutcome, Workflow, pick, run_name, title};
use crate::{
    kinds::builds::{
        effects::verified_artifact,
        log,
        rules::{BuildClaim, Outcome, State},
    },
    ports::ci::{BegunRun, Ci, CiError, Phase, Wanted},
    runtime::resource::Retry,
    world::World,
};
use contract::BuildId;
use std::time::Duration;

/// The pause after a reply that tells nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

type Done = Result<Outcome, Retry>;

/// Asks the host to begin a run.
pub(in super::super) async fn dispatch(world: &World, id: BuildId, state: &State) -> Done {
    let (ci, run) = reach(world, state)?;
    // An earlier process of the service, or an earlier attempt of this one, may have asked.
    if run.asked_at < world.started_at || !world.asked_runs.now(id, run.asked_at) {
        return done(RunOutcome::Unclear);
    }
    let (Some(plan), build) = (&state.plan, &state.build) else {
        return done(RunOutcome::Unclear);
    };
    let platform = ("platform", build.platform.name().to_owned());
    let (git_ref, inputs) = match run.workflow {
        Workflow::Own => {
            let app = ("app_id", build.app_id.to_string());
            (plan.git_ref.clone(), [app, platform, ("profile", build.profile.to_string())])
        }
        // What is built is no business of those who see the run, so its job asks for it.
        Workflow::Central => {
            let service = ("api_url", world.ports.site.api_url.clone());
            let git_ref = ci.central().map(|central| central.git_ref.clone());
            (git_ref.unwrap_or_default(), [("build_id", id.to_string()), platform, service])
        }
    };
    let wanted = Wanted { workflow: run.workflow.file(), git_ref, inputs: inputs.into() };
    done(match ci.dispatch(&run.repository, &wanted).await {
        Ok(Some(begun)) => {
            let url = begun.url.as_ref().map(|url| url.as_str()).unwrap_or_default();
            log::say(world, id, format!("{} began run {} {url}", run.repository, begun.id));
            RunOutcome::Begun(begun)
        }
        Ok(None) => RunOutcome::Unclear,
        Err(CiError::Refused(why)) => return Ok(Outcome::Impossible(why)),
        Err(CiError::Busy { why, after }) => {
            log::say(world, id, format!("Waiting {} s: {why}", after.as_secs()));
            RunOutcome::NotBegun(after)
        }
        Err(CiError::Unclear(why)) => {
            log::say(world, id, format!("Looking for the run: {why}"));
            RunOutcome::Unclear
        }
    })
}

/// Looks for the run that the host may have begun.
pub(in super::super) async fn find(world: &World, state: &State) -> Done {
    let (ci, run) = reach(world, state)?;
    let found = look_for(world, ci, state, run).await?;
    done(found.map_or(RunOutcome::NotFound, RunOutcome::Begun))
}

/// Looks how far the run is, and adds its finished steps to the log.
pub(in super::super) async fn follow(world: &World, id: BuildId, state: &State) -> Done {
    let (ci, run) = reach(world, state)?;
    let Some(number) = run.id else { return done(RunOutcome::Unclear) };
    world.asked_runs.forget(id);
    let progress = match ci.look(&run.repository, number, run.tag.as_deref()).await {
        Ok(progress) => progress,
        Err(CiError::Refused(why)) => return done(RunOutcome::Gone(why)),
        Err(CiError::Busy { after, .. }) => return done(RunOutcome::Later(after)),
        Err(CiError::Unclear(_)) => return done(RunOutcome::Later(AGAIN_AFTER)),
    };
    for step in progress.iter().flat_map(|progress| &progress.steps) {
        if !run.steps.contains(step) {
            log::say(world, id, step.clone());
        }
    }
    let succeeded = progress.as_ref().is_some_and(|progress| progress.phase == Phase::Succeeded);
    let made = if succeeded { verified_artifact(world, &state.build)? } else { None };
    done(RunOutcome::Looked(progress, made))
}

/// Cancels the run.
pub(in super::super) async fn cancel(world: &World, state: &State) -> Done {
    let (ci, run) = reach(world, state)?;
    let Some(number) = run.id else { return done(RunOutcome::Cancelled) };
    match ci.cancel(&run.repository, number).await {
        // Whoever may not cancel it now will not later.
        Ok(()) | Err(CiError::Refused(_)) => done(RunOutcome::Cancelled),
        Err(e) => Err(e.into()),
    }
}

fn done(outcome: RunOutcome) -> Done {
    Ok(Outcome::Run(outcome))
}

/// The host and the run of a build.
fn reach<'a>(world: &'a World, state: &'a State) -> Result<(&'a dyn Ci, &'a Run), Retry> {
    let ci = world.ports.ci.as_deref();
    let ci = ci.ok_or_else(|| Retry("this service has no GitHub App any more".into()))?;
    let run = state.run.as_ref().ok_or_else(|| Retry("the build has no run".into()))?;
    Ok((ci, run))
}

/// The run that was asked for, if the host shows it and no other build has it.
async fn look_for(
    world: &World,
    ci: &dyn Ci,
    state: &State,
    run: &Run,
) -> Result<Option<BegunRun>, CiError> {
    let shown = ci.runs_since(&run.repository, run.workflow.file(), run.since).await?;
    let is_free = |shown: &BegunRun| {
        let claim = BuildClaim::Run { run: run_name(run.repository.as_str(), shown.id) };
        // The write refuses a run of another build, so an error here does no harm.
        world.store.holder(&claim).map_or(true, |holder| holder.is_none())
    };
    let free = shown.into_iter().filter(is_free).collect();
    Ok(pick(free, &title(run.workflow, &state.build)))
}
