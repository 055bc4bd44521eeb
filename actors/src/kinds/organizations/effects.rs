//! What an organization does outside of its record.

use super::rules::{Effect, Organizations, Outcome};
use crate::{
    kinds::projects::{self, Projects},
    runtime::{
        cascade::ask_to_go,
        resource::{Kept, Retry},
    },
    world::World,
};
use contract::{OrganizationId, ProjectId, UserId};
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: OrganizationId,
    kept: Arc<Kept<Organizations>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let entry = format!("organization/{id}");
    match effect {
        Effect::Empty { cascade } => empty(&entry, cascade, &world).await,
        Effect::Unlist => unlist(&entry, &kept.state.leaving, &world).await,
    }
}

async fn empty(entry: &str, cascade: bool, world: &World) -> Result<Outcome, Retry> {
    if !cascade && !world.store.newest::<Kept<Projects>>(entry, None, 1)?.is_empty() {
        return Ok(Outcome::HasProjects);
    }
    let owners = world.owners()?;
    let left = ask_to_go(world, entry, &owners.projects, projects::Command::Delete).await?;
    Ok(if left == 0 { Outcome::Empty } else { Outcome::NotYet })
}

async fn unlist(entry: &str, users: &[UserId], world: &World) -> Result<Outcome, Retry> {
    for key in world.store.newest::<Kept<Projects>>(entry, None, usize::MAX)? {
        let seen = world.store.get::<Kept<Projects>>(&key)?;
        let lists =
            |user: &UserId| seen.as_ref().is_some_and(|p| p.record.state.member_ids.contains(user));
        let Ok(project) = key.parse::<ProjectId>() else { continue };
        if !users.iter().any(lists) {
            continue;
        }
        let command = projects::Command::Unlist(users.to_vec());
        world.owners()?.projects.ask_if_there(project, command).await?;
    }
    Ok(Outcome::Unlisted(users.to_vec()))
}
