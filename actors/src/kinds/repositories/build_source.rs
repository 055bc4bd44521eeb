//! The connected repository as the source of a deployment.

use super::{RepositoryClaim, effects};
use crate::{
    ports::{Remote, sealed::SealError},
    runtime::store::Store,
    world::World,
};
use contract::{AppId, Fault, deployments::AppSource};

/// Adds the address of the app's repository to a source without an address, and its branch to a
/// source without a reference.
pub(crate) fn with_address(
    store: &Store,
    app: AppId,
    source: AppSource,
) -> Result<AppSource, Fault> {
    let connected = store.held_by(&RepositoryClaim::App { app })?;
    let connected = match (&source.url, &connected) {
        (Some(url), Some((_, connected))) if connected.source.url == *url => &connected.source,
        (Some(_), _) => return Ok(source),
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

/// The address of a source, with the token of the app's repository if it is that one. `None`: the
/// source has no address.
pub(crate) fn remote(
    world: &World,
    app: AppId,
    source: &AppSource,
) -> Result<Option<Remote>, Unusable> {
    let (Some(url), git_ref) = (source.url.clone(), source.git_ref.clone()) else {
        return Ok(None);
    };
    let connected = world.store.held_by(&RepositoryClaim::App { app })?;
    let token = match connected.filter(|(_, connected)| connected.source.url == url) {
        Some((_, connected)) => effects::open(world, &connected)?,
        None => None,
    };
    Ok(Some(Remote { url, git_ref, token }))
}

/// Why the token of a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Store(#[from] Fault),
    #[error(transparent)]
    Seal(#[from] SealError),
}
