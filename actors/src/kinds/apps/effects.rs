//! What an app does outside of its record.

use super::rules::{Effect, Outcome};
use crate::{
    kinds::{artifacts, backups, deployments, instances, releases, tokens},
    runtime::{cascade::ask_to_go, resource::Retry},
    world::World,
};
use contract::AppId;
use std::sync::Arc;

/// Releases go first: they hold artifacts. Instances take their volumes with them.
pub(super) async fn perform(
    effect: Effect,
    id: AppId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveContents = effect;
    let (owners, entry) = (world.owners()?, format!("app/{id}"));
    let left = ask_to_go(&world, &entry, &owners.deployments, deployments::Command::Remove).await?
        + ask_to_go(&world, &entry, &owners.backups, backups::Command::Remove).await?
        + ask_to_go(&world, &entry, &owners.releases, releases::Command::Remove).await?
        + ask_to_go(&world, &entry, &owners.artifacts, artifacts::Command::Remove).await?
        + ask_to_go(&world, &entry, &owners.tokens, tokens::Command::Remove).await?
        + ask_to_go(&world, &entry, &owners.instances, instances::Command::Delete { data: true })
            .await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}
