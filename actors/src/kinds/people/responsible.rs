//! Who hears of what goes wrong with an app.

use super::{accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects};
use crate::{kinds::world::World, runtime::store::get};
use contract::{AppId, Email, Fault, authentication::Role};

/// The name of the app, and the addresses of the owner and the admins of its organization.
pub fn responsible(world: &World, app: AppId) -> Result<(String, Vec<Email>), Fault> {
    let store = &world.store;
    let app = get::<Apps>(store, app)?;
    let project = get::<Projects>(store, app.project_id)?;
    let organization = get::<Organizations>(store, project.organization_id)?;
    let mut people = Vec::new();
    for member in &organization.members {
        if member.role == Role::Admin
            && let Some(account) = store.get::<Accounts>(&member.user)?
        {
            people.push(account.state.email.clone());
        }
    }
    Ok((app.name.to_string(), people))
}
