//! The connected repository as the source of deployments and builds.

use super::{
    Repository,
    access::{RepositoryAccess, access},
    lookup,
};
use crate::{
    kinds::{people::tenant::tenant, world::World},
    ports::{
        NotDone,
        sources::{GitCredential, Remote, Revision},
    },
    runtime::{store::Store, turns::Tenant},
};
use contract::{
    AppId, Fault,
    deployments::AppSource,
    text::{GitRef, GitUrl},
};

/// Adds the address of the app's repository to a source without an address, and its branch to a
/// source without a reference.
pub(crate) fn with_address(
    store: &Store,
    app: AppId,
    source: AppSource,
) -> Result<AppSource, Fault> {
    let connected = lookup::connected(store, app)?;
    let connected = match (&source.url, &connected) {
        (Some(url), Some((_, connected))) if connected.source.url == *url => &connected.source,
        (Some(url), _) => {
            needs_no_key("source.git.url", url)?;
            return Ok(source);
        }
        (None, Some((_, connected))) => &connected.source,
        (None, None) => {
            return Err(Fault::invalid(
                "source.git.url",
                "is needed: the app has no repository (svc_connectRepository connects one)",
            ));
        }
    };
    let git_ref = source.git_ref.or_else(|| connected.branch.clone());
    Ok(AppSource { url: Some(connected.url.clone()), git_ref, ..source })
}

/// Refuses an ssh address that is not that of an app's repository.
pub(crate) fn needs_no_key(field: &str, url: &GitUrl) -> Result<(), Fault> {
    let problem = "has no deploy key: only the connected repository of an app is read over ssh \
                   (svc_connectRepository connects one)";
    url.ssh().map_or(Ok(()), |_| Err(Fault::invalid(field, problem)))
}

/// The remote of a source, with the access to the app's repository if it is that one.
pub(crate) async fn remote(
    world: &World,
    app: AppId,
    source: &AppSource,
) -> Result<Remote, NotDone> {
    let url = source.url.clone();
    let url = url.ok_or_else(|| NotDone::Refused("it names no repository".into()))?;
    let connected = at_address(world, app, &url)?;
    let revision = revision(connected.as_ref(), source.git_ref.clone());
    let credential = credential_of(world, connected.as_ref()).await?;
    Ok(Remote { tenant: tenant_of(world, app)?, url, revision, credential })
}

/// The remote of the app's repository, and how it may be read; `None` if it has none.
pub(crate) async fn remote_of_app(
    world: &World,
    app: AppId,
    wanted: Option<GitRef>,
) -> Result<Option<(Remote, RepositoryAccess)>, NotDone> {
    let Some(connected) = connected(world, app)? else { return Ok(None) };
    let wanted = wanted.or_else(|| connected.source.branch.clone());
    let revision = revision(Some(&connected), wanted);
    let mut access = access(world, app, &connected.source).await?;
    let credential = access.credential.take();
    let tenant = tenant_of(world, app)?;
    Ok(Some((Remote { tenant, url: connected.source.url, revision, credential }, access)))
}

fn tenant_of(world: &World, app: AppId) -> Result<Tenant, NotDone> {
    tenant(&world.store, app).map_err(|fault| NotDone::Unreachable(fault.to_string()))
}

/// The permission to read an address, if it is that of the app's repository.
pub(crate) async fn credential_for(
    world: &World,
    app: AppId,
    url: &GitUrl,
) -> Result<Option<GitCredential>, NotDone> {
    credential_of(world, at_address(world, app, url)?.as_ref()).await
}

/// The app's repository, if it has this address.
fn at_address(world: &World, app: AppId, url: &GitUrl) -> Result<Option<Repository>, NotDone> {
    Ok(connected(world, app)?.filter(|connected| connected.source.url == *url))
}

fn connected(world: &World, app: AppId) -> Result<Option<Repository>, NotDone> {
    let connected = lookup::connected(&world.store, app);
    let connected = connected.map_err(|fault| NotDone::Unreachable(fault.to_string()))?;
    Ok(connected.map(|(_, connected)| connected.state.clone()))
}

async fn credential_of(
    world: &World,
    repository: Option<&Repository>,
) -> Result<Option<GitCredential>, NotDone> {
    let Some(Repository { app_id, source, .. }) = repository else { return Ok(None) };
    Ok(access(world, *app_id, source).await?.credential)
}

/// The name of the connected branch means the branch, even if a tag has the same name.
fn revision(connected: Option<&Repository>, wanted: Option<GitRef>) -> Revision {
    let branch = connected.and_then(|connected| connected.source.branch.as_ref());
    match wanted {
        Some(wanted) if branch == Some(&wanted) => Revision::Branch(wanted),
        wanted => Revision::of(wanted),
    }
}
