//! What happened in organizations: the audit log, as their members may see it.

use crate::{
    call::{
        authz::{memberships, reaches_project},
        context::Call,
        platform::Platform,
    },
    kinds::{
        delivery::{
            artifacts::Artifacts, builds::Builds, credentials::Credentials, releases::Releases,
        },
        hosting::{backups::Backups, deployments::Deployments, instances::Instances},
        people::{
            accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects,
            tokens::Tokens,
        },
        table::Owned,
    },
    runtime::{
        audit::{Event, EventIndex},
        pagination,
        store::Store,
    },
};
use contract::{
    AppId, EventId, Fault, Operation, Page, Serves,
    authentication::Role,
    endpoint::CreateUploadUrl,
    home::{Activity, GetActivity},
    operators::AuditEvent,
};
use std::{collections::HashMap, ops::ControlFlow};
use store::Snapshot;

impl Serves<GetActivity> for Platform {
    async fn serve(&self, cx: &Call, p: GetActivity) -> Result<Page<Activity>, Fault> {
        let store = &self.world.store;
        let user = cx.user()?.id;
        let memberships = &memberships(&self.world, user)?.organizations;
        let wanted = |id| p.organization_id.is_none_or(|only| only == id);
        let organizations = memberships.keys().copied().filter(|id| wanted(*id));
        let entries: Vec<_> =
            organizations.map(|organization| EventIndex::Organization { organization }).collect();
        let mut reached = HashMap::new();
        let mut reaches = |event: &AuditEvent| {
            let Some(membership) = event.organization_id.and_then(|id| memberships.get(&id)) else {
                return Ok(false);
            };
            if membership.role >= Role::Supervisor {
                return Ok(true);
            }
            let Some(id) = event.project_id else { return Ok(false) };
            if let Some(known) = reached.get(&id) {
                return Ok(*known);
            }
            let project = store.get::<Projects>(&id)?;
            let found = project.is_some_and(|seen| reaches_project(membership, &seen, user));
            reached.insert(id, found);
            Ok::<_, Fault>(found)
        };
        // That an upload was opened says little: its end is an entry of its own.
        let is_quiet = |event: &AuditEvent| event.function == CreateUploadUrl::NAME;
        let list = |after: Option<&EventId>| pagination::newest_of(store, &entries, after);
        pagination::search::<Event, _, _>(list, (p.limit, p.cursor), |_, event| {
            let event = &event.0;
            if is_quiet(event) {
                return Ok(ControlFlow::Continue(None));
            }
            // What a person did, they see. What it was done to has a name only within their reach.
            let is_reached = reaches(event)?;
            let is_shown = is_reached || event.user_id == Some(user);
            let shown = is_shown.then(|| activity(store, event, is_reached)).transpose()?.flatten();
            Ok(ControlFlow::Continue(shown))
        })
    }
}

fn activity(
    store: &Store,
    event: &AuditEvent,
    is_reached: bool,
) -> Result<Option<Activity>, Fault> {
    let Some(organization_id) = event.organization_id else { return Ok(None) };
    let user = event.user_id.map(|id| store.get::<Accounts>(&id)).transpose()?.flatten();
    let named = if is_reached { known(store, &event.resource)? } else { None };
    let (resource_name, app_id) = named.unzip();
    let app_id = app_id.flatten();
    let app = app_id.map(|id| there::<Apps>(store, id)).transpose()?.flatten();
    Ok(Some(Activity {
        id: event.id,
        at: event.at,
        function: event.function.clone(),
        organization_id,
        user_id: event.user_id,
        user_name: user.map(|seen| seen.name.clone()),
        via: event.via,
        resource: event.resource.clone(),
        resource_name,
        app_id: app_id.filter(|_| app.is_some()),
        app_name: app.map(|seen| seen.name.clone()),
    }))
}

/// What an object is called, and the app that it belongs to. `None`: it is gone, or has no name.
fn known(store: &Store, id: &str) -> Result<Option<(String, Option<AppId>)>, Fault> {
    /// Reads an object if the id is one of its kind.
    fn read<R: Owned>(
        store: &Store,
        id: &str,
        known: impl FnOnce(&R::State) -> (String, Option<AppId>),
    ) -> Result<Option<(String, Option<AppId>)>, Fault> {
        let seen = id.parse().ok().map(|id| there::<R>(store, id)).transpose()?.flatten();
        Ok(seen.map(|seen| known(&seen.state)))
    }
    let found = [
        read::<Releases>(store, id, |seen| {
            (seen.release.version.to_string(), Some(seen.release.app_id))
        })?,
        read::<Apps>(store, id, |app| (app.name.to_string(), id.parse().ok()))?,
        read::<Artifacts>(store, id, |seen| {
            (seen.artifact.file_name.to_string(), Some(seen.artifact.app_id))
        })?,
        read::<Builds>(store, id, |seen| {
            (format!("{} build", seen.build.platform.name()), Some(seen.build.app_id))
        })?,
        read::<Credentials>(store, id, |seen| {
            (seen.credential.name.to_string(), Some(seen.credential.app_id))
        })?,
        read::<Deployments>(store, id, |seen| {
            ("deployment".to_owned(), Some(seen.deployment.app_id))
        })?,
        read::<Backups>(store, id, |seen| ("backup".to_owned(), Some(seen.backup.app_id)))?,
        read::<Instances>(store, id, |seen| (seen.name.to_string(), Some(seen.app_id)))?,
        read::<Projects>(store, id, |project| (project.name.to_string(), None))?,
        read::<Organizations>(store, id, |seen| (seen.name.to_string(), None))?,
        read::<Tokens>(store, id, |token| (format!("deploy token {}", token.name), token.app_id))?,
    ];
    Ok(found.into_iter().flatten().next())
}

/// A resource that is not deleted.
fn there<R: Owned>(store: &Store, id: R::Key) -> Result<Option<Snapshot<R>>, Fault> {
    Ok(store.get::<R>(&id)?.filter(|seen| !seen.is_deleted()))
}
