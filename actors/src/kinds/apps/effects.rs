//! The effects of an app.

use super::rules::{Effect, Outcome};
use crate::{
    kinds::{
        apps::Apps,
        instances::{Command, Instances},
        organizations::Organizations,
        projects::Projects,
    },
    runtime::{
        entries::Under,
        resource::{Resource, Retry},
    },
    world::World,
};
use contract::{AppId, OrganizationId};
use std::sync::Arc;

pub(super) async fn perform(
    effect: Effect,
    id: AppId,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Effect::RemoveContents = effect;
    leave_instances(id, &world).await?;
    let is_empty = world.owners()?.delete_children(&world, &id).await?;
    Ok(if is_empty { Outcome::Empty } else { Outcome::NotYet })
}

/// Leaves the instances to the organization, which can bring their data back for a while. Those of an
/// organization that is deleted too are children like others.
async fn leave_instances(id: AppId, world: &World) -> Result<(), Retry> {
    let Some(organization) = organization(id, world)? else { return Ok(()) };
    let (owners, instances, mut after) = (&world.owners()?.instances, Under::<Apps>(id), None);
    while let Some(page) = world.store.next_page::<Instances>(&instances, &mut after).await? {
        for instance in page {
            owners.ask_if_there(instance, Command::Leave(organization)).await?;
        }
    }
    Ok(())
}

/// The organization of an app, unless it is being deleted.
fn organization(id: AppId, world: &World) -> Result<Option<OrganizationId>, Retry> {
    let store = &world.store;
    let Some(app) = store.get::<Apps>(&id)? else { return Ok(None) };
    let Some(project) = store.get::<Projects>(&app.project_id)? else { return Ok(None) };
    let organization = store.get::<Organizations>(&project.organization_id)?;
    let stays = organization.is_some_and(|found| !Organizations::is_deleted(&found.state));
    Ok(stays.then_some(project.organization_id))
}
