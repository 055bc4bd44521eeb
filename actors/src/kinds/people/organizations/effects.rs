//! The effects of an organization.

use super::rules::{Effect, Organizations, Outcome};
use crate::{
    kinds::{
        people::projects::{self, Projects},
        world::World,
    },
    runtime::{entries::Under, resource::Retry},
};
use contract::{OrganizationId, UserId};
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    effect: Effect,
    id: OrganizationId,
    kept: Snapshot<Organizations>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::FindProjects => {
            let projects = Under::<Organizations>(id);
            let found = world.store.newest::<Projects>(&projects, None).count_up_to(1)?;
            Ok(Outcome::HasProjects(found > 0))
        }
        Effect::Unlist => unlist(id, &kept.leaving, &world).await,
    }
}

async fn unlist(id: OrganizationId, users: &[UserId], world: &World) -> Result<Outcome, Retry> {
    let mut projects = world.store.oldest::<Projects>(&Under::<Organizations>(id), None);
    while let Some(page) = projects.next_keys().await? {
        for project in page {
            let seen = world.store.get::<Projects>(&project)?;
            let lists = |user: &UserId| seen.as_ref().is_some_and(|p| p.member_ids.contains(user));
            if users.iter().any(lists) {
                let command = projects::Command::Unlist(users.to_vec());
                world.to::<Projects>(project).ask_if_there(command).await?;
            }
        }
    }
    Ok(Outcome::Unlisted(users.to_vec()))
}
