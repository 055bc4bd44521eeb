//! Performs the effects of a build in a CI.

use super::{CiRun, RunOutcome, RunReport, Workflow, pick, run_name, title};
use crate::{
    kinds::{
        delivery::builds::{
            effects::verified_artifact,
            log,
            rules::{BuildClaim, Outcome, State},
        },
        world::World,
    },
    ports::ci::{BegunRun, Ci, CiError, Phase, RunRequest},
    runtime::resource::Retry,
};
use contract::BuildId;
use std::time::Duration;

/// The pause after a reply that tells nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How long after the end of a build its run may take to end, before it is forced.
const FORCE_AFTER: Duration = Duration::from_secs(300);

type Done = Result<Outcome, Retry>;

/// Asks the host to begin a run.
pub(in crate::kinds::delivery::builds) async fn dispatch(
    world: &World,
    id: BuildId,
    state: &State,
) -> Done {
    let (ci, run) = match reach(world, state) {
        Ok(reached) => reached,
        Err(outcome) => return done(outcome),
    };
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
    let wanted = RunRequest { workflow: run.workflow.file(), git_ref, inputs: inputs.into() };
    done(match ci.dispatch(&run.repository, &wanted).await {
        Ok(Some(begun)) => {
            let url = begun.url.as_ref().map(|url| url.as_str()).unwrap_or_default();
            log::say(world, id, format!("{} began run {} {url}", run.repository, begun.id));
            RunOutcome::Begun(begun)
        }
        Ok(None) => RunOutcome::Unclear,
        Err(CiError::Refused(why)) => {
            return Ok(Outcome::Impossible(why));
        }
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
pub(in crate::kinds::delivery::builds) async fn find(world: &World, state: &State) -> Done {
    let (ci, run) = match reach(world, state) {
        Ok(reached) => reached,
        Err(outcome) => return done(outcome),
    };
    done(match look_for(world, ci, state, run).await {
        Ok(found) => found.map_or(RunOutcome::NotFound, RunOutcome::Begun),
        Err(e) => untold(e),
    })
}

/// Looks how far the run is.
pub(in crate::kinds::delivery::builds) async fn follow(world: &World, state: &State) -> Done {
    let (ci, run, number) = match reach_run(world, state) {
        Ok(reached) => reached,
        Err(outcome) => return done(outcome),
    };
    let progress = match ci.look(&run.repository, number, run.tag.as_deref()).await {
        Ok(Some(progress)) => progress,
        Ok(None) => return done(RunOutcome::Looked(None)),
        Err(e) => return done(untold(e)),
    };
    let succeeded = progress.phase == Phase::Succeeded;
    let made = if succeeded { verified_artifact(world, &state.build)? } else { None };
    let key = world.ports.random.id(world.ports.clock.now());
    done(RunOutcome::Looked(Some(Box::new(RunReport { progress, made, key }))))
}

/// Cancels the run, and looks whether it has ended.
pub(in crate::kinds::delivery::builds) async fn cancel(world: &World, state: &State) -> Done {
    let (ci, run, number) = match reach_run(world, state) {
        Ok(reached) => reached,
        Err(outcome) => return done(outcome),
    };
    let since = state.build.finished_at.unwrap_or(run.asked_at);
    let force = world.ports.clock.now() > since + FORCE_AFTER;
    let asked = ci.cancel(&run.repository, number, force).await;
    let looked = match asked {
        Ok(()) => ci.look(&run.repository, number, None).await,
        Err(e) => Err(e),
    };
    done(match looked {
        Ok(Some(progress)) if progress.phase.is_final() => RunOutcome::Ended,
        Ok(_) => RunOutcome::Ending,
        Err(e) => untold(e),
    })
}

/// An answer that tells nothing about a run, or that there is none.
fn untold(e: CiError) -> RunOutcome {
    match e {
        CiError::Refused(why) => RunOutcome::Gone(why),
        CiError::Busy { after, .. } => RunOutcome::Later(after),
        CiError::Unclear(_) => RunOutcome::Later(AGAIN_AFTER),
    }
}

fn done(outcome: RunOutcome) -> Done {
    Ok(Outcome::Run(outcome))
}

/// The host and the run of a build.
fn reach<'a>(world: &'a World, state: &'a State) -> Result<(&'a dyn Ci, &'a CiRun), RunOutcome> {
    let gone = |why: &str| RunOutcome::Gone(why.to_owned());
    let ci = world.ports.ci.as_deref();
    let ci = ci.ok_or_else(|| gone("this service has no GitHub App any more"))?;
    Ok((ci, state.run.as_ref().ok_or_else(|| gone("the build has no run"))?))
}

/// The host and the run, whose number is known.
fn reach_run<'a>(
    world: &'a World,
    state: &'a State,
) -> Result<(&'a dyn Ci, &'a CiRun, u64), RunOutcome> {
    let (ci, run) = reach(world, state)?;
    Ok((ci, run, run.id.ok_or(RunOutcome::Unclear)?))
}

/// The run that was asked for, if the host shows it and no other build has it.
async fn look_for(
    world: &World,
    ci: &dyn Ci,
    state: &State,
    run: &CiRun,
) -> Result<Option<BegunRun>, CiError> {
    let shown = ci.runs_since(&run.repository, run.workflow.file(), run.since).await?;
    let is_free = |shown: &BegunRun| {
        let claim = BuildClaim::Run { run: run_name(run.repository.as_str(), shown.id) };
        // The write refuses a run of another build, so an error here does no harm.
        world.store.holder(&claim).map_or(true, |holder| holder.is_none())
    };
    let free = shown.into_iter().filter(is_free).collect();
    // A run of the operator's workflow has a name of its own.
    let git_ref = state.plan.as_ref().map(|plan| plan.git_ref.as_str());
    let git_ref = git_ref.filter(|_| run.workflow == Workflow::Own);
    Ok(pick(free, &title(run.workflow, &state.build), git_ref))
}
