//! The effects of an app.

use super::rules::{Effect, Outcome};
use crate::{runtime::resource::Retry, world::World};
use contract::AppId;
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: AppId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveContents = effect;
    let left = world.owners()?.delete_children(&world.store, &id).await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}
