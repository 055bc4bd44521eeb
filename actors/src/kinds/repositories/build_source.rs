//! The connected repository as the source of a deployment.

use super::{effects, lookup};
use crate::{
    ports::{NotDone, Remote},
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
    let connected = lookup::connected(store, app)?;
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

/// The remote of a source, with the token of the app's repository if it is that one.
pub(crate) fn remote(world: &World, app: AppId, source: &AppSource) -> Result<Remote, NotDone> {
    let url = source.url.clone();
    let url = url.ok_or_else(|| NotDone::Refused("it names no repository".into()))?;
    let connected = lookup::connected(&world.store, app);
    let connected = connected.map_err(|fault| NotDone::Unreachable(fault.to_string()))?;
    let token = match connected.filter(|(_, connected)| connected.source.url == url) {
        Some((_, connected)) => {
            effects::open(world, &connected).map_err(|e| NotDone::Refused(e.to_string()))?
        }
        None => None,
    };
    Ok(Remote { url, git_ref: source.git_ref.clone(), token })
}
