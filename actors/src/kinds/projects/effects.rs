//! What a project does outside of its record.

use super::rules::{Effect, Outcome};
use crate::{
    kinds::apps,
    runtime::{cascade::ask_to_go, resource::Retry},
    world::World,
};
use contract::ProjectId;
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: ProjectId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveApps = effect;
    let (owners, entry) = (world.owners()?, format!("project/{id}"));
    let left = ask_to_go(&world, &entry, &owners.apps, apps::Command::Delete).await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}
