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
    let left = world.owners()?.delete_children(&world.store, &id).await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}
