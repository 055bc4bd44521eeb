//! What an organization does outside of its record.

use super::machine::{Effect, Outcome};
use crate::{
    projects::{self, Projects},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{Fault, OrganizationId, ProjectId};
use std::sync::Arc;

/// Projects asked to go at a time.
const BATCH: usize = 100;

pub(super) async fn perform(
    effect: Effect,
    id: OrganizationId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::Empty { cascade } = effect;
    let projects =
        world.store.newest::<Kept<Projects>>(&format!("organization/{id}"), None, BATCH)?;
    if projects.is_empty() {
        return Ok(Outcome::Empty);
    }
    if !cascade {
        return Ok(Outcome::HasProjects);
    }
    for project in projects.iter().filter_map(|key| key.parse::<ProjectId>().ok()) {
        match world.owners()?.projects.ask(project, projects::Command::Delete).await {
            Ok(_) | Err(Fault::NotFound(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(Outcome::NotYet)
}
