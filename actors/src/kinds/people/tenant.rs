//! For whom work on an app is done.

use super::{apps::Apps, projects::Projects};
use crate::runtime::{
    store::{Store, get},
    turns::Tenant,
};
use contract::{AppId, Fault};

/// The organization of an app.
pub fn tenant(store: &Store, app: AppId) -> Result<Tenant, Fault> {
    let app = get::<Apps>(store, app)?;
    Ok(Tenant::Organization(get::<Projects>(store, app.project_id)?.organization_id))
}
