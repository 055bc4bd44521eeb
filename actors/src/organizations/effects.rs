//! What an organization does outside of its record.

use super::machine::{Effect, Outcome};
use crate::{
    projects::{self, Projects},
    runtime::{
        cascade::ask_to_go,
        resource::{Kept, Retry},
    },
    world::World,
};
use contract::OrganizationId;
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: OrganizationId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::Empty { cascade } = effect;
    let entry = format!("organization/{id}");
    if !cascade && !world.store.newest::<Kept<Projects>>(&entry, None, 1)?.is_empty() {
        return Ok(Outcome::HasProjects);
    }
    let owners = world.owners()?;
    let left = ask_to_go(&world, &entry, &owners.projects, projects::Command::Delete).await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}
