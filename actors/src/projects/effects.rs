//! What a project does outside of its record.

use super::machine::{Effect, Outcome};
use crate::{
    apps::{self, Apps},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{AppId, Fault, ProjectId};
use std::sync::Arc;

/// Apps asked to go at a time.
const BATCH: usize = 100;

pub(super) async fn perform(
    effect: Effect,
    id: ProjectId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveApps = effect;
    let apps = world.store.newest::<Kept<Apps>>(&format!("project/{id}"), None, BATCH)?;
    if apps.is_empty() {
        return Ok(Outcome::Empty);
    }
    for app in apps.iter().filter_map(|key| key.parse::<AppId>().ok()) {
        match world.owners()?.apps.ask(app, apps::Command::Delete).await {
            Ok(_) | Err(Fault::NotFound(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(Outcome::NotYet)
}
