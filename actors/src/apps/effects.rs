//! What an app does outside of its record.

use super::machine::{Effect, Outcome};
use crate::{
    artifacts::{self, Artifacts},
    releases::{self, Releases},
    runtime::{
        handle::Handle,
        resource::{Kept, Resource, Retry},
    },
    tokens::{self, Tokens},
    world::World,
};
use contract::{AppId, Fault};
use std::sync::Arc;

/// Resources asked to go at a time.
const BATCH: usize = 100;

/// Releases go first: they hold artifacts.
pub(super) async fn perform(
    effect: Effect,
    id: AppId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveContents = effect;
    let owners = world.owners()?;
    let entry = format!("app/{id}");
    let releases =
        remove::<Releases>(&world, &entry, &owners.releases, releases::Command::Remove).await?;
    let artifacts =
        remove::<Artifacts>(&world, &entry, &owners.artifacts, artifacts::Command::Remove).await?;
    let tokens = remove::<Tokens>(&world, &entry, &owners.tokens, tokens::Command::Remove).await?;
    Ok(if releases + artifacts + tokens == 0 { Outcome::Empty } else { Outcome::NotYet })
}

/// Asks all that carry the entry to go; how many there were.
async fn remove<R: Resource>(
    world: &World,
    entry: &str,
    owners: &Handle<R>,
    command: R::Command,
) -> Result<usize, Retry> {
    let found = world.store.newest::<Kept<R>>(entry, None, BATCH)?;
    for id in found.iter().filter_map(|key| key.parse::<R::Id>().ok()) {
        match owners.ask(id, command.clone()).await {
            Ok(_) | Err(Fault::NotFound(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(found.len())
}
