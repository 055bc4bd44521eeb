//! An app, a project or an organization with payments that are not settled cannot be deleted.

use crate::{
    kinds::{
        commerce::checkouts::CheckoutIndex,
        people::{apps::Apps, organizations::Organizations, projects::Projects},
        world::World,
    },
    runtime::entries::Under,
};
use contract::{AppId, CheckoutId, Fault, OrganizationId, ProjectId, checkouts::Reference};

/// The most payments that a refusal counts.
const MOST_COUNTED: usize = 100;

/// What somebody wants to delete.
#[derive(Clone, Copy)]
pub enum Whole {
    App(AppId),
    Project(ProjectId),
    Organization(OrganizationId),
}

/// Refuses the deletion of what has payments that are not settled. A payment that arrives while
/// the deletion is under way is told to people instead.
pub async fn refuse_unsettled(world: &World, whole: Whole) -> Result<(), Fault> {
    let mut found = Vec::new();
    add_unsettled(world, whole, &mut found).await?;
    match found.as_slice() {
        [] => Ok(()),
        [first, others @ ..] => Err(Fault::NotNow(format!(
            "the payment {}{} not settled; see svc_getCheckout for the reason, and refund it at the \
             provider or settle it with svc_settleCheckout",
            Reference(*first),
            match others.len() {
                0 => " is".into(),
                more => format!(" and {more} more are"),
            }
        ))),
    }
}

/// Adds the payments that are not settled.
async fn add_unsettled(
    world: &World,
    whole: Whole,
    found: &mut Vec<CheckoutId>,
) -> Result<(), Fault> {
    match whole {
        Whole::App(app) => add_unsettled_of(world, app, found),
        Whole::Project(id) => add_unsettled_of_project(world, id, found).await,
        Whole::Organization(id) => {
            let mut projects = world.store.oldest::<Projects>(&Under::<Organizations>(id), None);
            while let Some(page) = projects.next_keys().await? {
                for project in page {
                    add_unsettled_of_project(world, project, found).await?;
                }
            }
            Ok(())
        }
    }
}

async fn add_unsettled_of_project(
    world: &World,
    id: ProjectId,
    found: &mut Vec<CheckoutId>,
) -> Result<(), Fault> {
    let mut apps = world.store.oldest::<Apps>(&Under::<Projects>(id), None);
    while let Some(page) = apps.next_keys().await? {
        for app in page {
            add_unsettled_of(world, app, found)?;
        }
    }
    Ok(())
}

fn add_unsettled_of(world: &World, app: AppId, found: &mut Vec<CheckoutId>) -> Result<(), Fault> {
    let unsettled = CheckoutIndex::UnsettledOf { app };
    for id in world.store.newest(&unsettled, None).keys().take(MOST_COUNTED) {
        found.push(id?);
    }
    Ok(())
}
