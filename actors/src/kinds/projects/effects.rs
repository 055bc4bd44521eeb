//! The effects of a project.

use super::rules::{Effect, Outcome};
use crate::{runtime::resource::Retry, world::World};
use contract::ProjectId;
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: ProjectId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveApps = effect;
    let is_empty = world.owners()?.delete_children(&world, &id).await?;
    Ok(if is_empty { Outcome::Empty } else { Outcome::NotYet })
}
