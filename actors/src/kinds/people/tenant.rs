//! For whom work is done: the account that owns the organization. More organizations of one account get no
//! more turns.

use super::{apps::Apps, organizations::Organizations, projects::Projects};
use crate::runtime::{
    store::{Store, get},
    turns::Tenant,
};
use contract::{AppId, Fault, OrganizationId};

/// For whom work on an app is done.
pub fn tenant(store: &Store, app: AppId) -> Result<Tenant, Fault> {
    tenant_of(store, organization(store, app)?)
}

/// For whom work on what an organization has is done.
pub fn tenant_of(store: &Store, organization: OrganizationId) -> Result<Tenant, Fault> {
    Ok(Tenant::User(get::<Organizations>(store, organization)?.owner))
}

/// The organization of an app.
pub fn organization(store: &Store, app: AppId) -> Result<OrganizationId, Fault> {
    let app = get::<Apps>(store, app)?;
    Ok(get::<Projects>(store, app.project_id)?.organization_id)
}
