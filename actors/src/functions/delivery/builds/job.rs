//! What a job of the operator's workflow builds. Its identity token says in which run it is.

use super::runners::order;
use crate::kinds::{
    delivery::builds::ci::{Workflow, build_of_run},
    world::World,
};
use contract::{Fault, UserId, runners::BuildOrder, trusted_publishers::CiRun};

/// A build for a job of the operator's workflow.
pub(crate) struct Job {
    pub order: BuildOrder,
    /// The person who triggered the build.
    pub acts_for: UserId,
}

/// The build of a run of the operator's workflow; `None` if the run is no such one. A run is
/// known by its number, which the host gives out once.
pub(crate) async fn job_of(world: &World, run: &CiRun) -> Result<Option<Job>, Fault> {
    let central = world.ports.ci.as_deref().and_then(|ci| ci.central());
    let name = central.map(|central| central.repository.as_str());
    if !name.is_some_and(|name| name.eq_ignore_ascii_case(&run.repository)) {
        return Ok(None);
    }
    let found = build_of_run(&world.store, &run.repository, &run.run_id)?;
    let Some((id, build)) = found else { return Ok(None) };
    let is_central = build.run.as_ref().is_some_and(|run| run.workflow == Workflow::Central);
    match build.build.triggered_by {
        Some(acts_for) if is_central && !build.build.state.is_final() => {
            Ok(Some(Job { order: order(world, id, &build.state).await?, acts_for }))
        }
        _ => Ok(None),
    }
}
