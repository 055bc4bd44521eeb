//! Finds the container for a request. The record decides: a switch writes the record, and the next
//! request goes to the new container.

use super::{InstanceClaim, Instances};
use crate::{kinds::world::World, runtime::store::Store};
use contract::{
    AppId, Fault, InstanceId,
    instances::{InstanceKind, Role, ServiceState},
};
use std::net::SocketAddr;
use store::Snapshot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub instance: InstanceId,
    pub role: Role,
    pub server: SocketAddr,
}

/// `target` is `app_…` (the backend of the app, or else its market server) or `ins_…`, and may name
/// a service after a `~`, such as `ins_…~dashboard`.
pub fn route(world: &World, target: &str) -> Result<Route, Fault> {
    let (instance, role, found) = find(&world.store, target)?;
    let service = found.state.service(role).ok_or(Fault::NotFound("service"))?;
    let none = || Fault::Unavailable("the server of this instance, which does not run,");
    let host = world.host(found.state.engine).map_err(|_| none())?;
    // After a start of the service or of the engine, a recorded port may belong to another container until all
    // are observed once.
    let trusted = host.health.has_observed_all() && service.live.state == ServiceState::Running;
    let port = service.live.port.filter(|_| trusted).ok_or_else(none)?;
    Ok(Route { instance, role, server: SocketAddr::new(host.address, port) })
}

/// Whether there is what `target` names, running or not.
pub fn exists(store: &Store, target: &str) -> Result<bool, Fault> {
    match find(store, target) {
        Ok((_, role, found)) => Ok(found.state.service(role).is_some()),
        Err(Fault::NotFound(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// The instance and the service that `target` names.
pub fn find(store: &Store, target: &str) -> Result<(InstanceId, Role, Snapshot<Instances>), Fault> {
    let (id, role) = match target.split_once('~') {
        None => (target, Role::Server),
        Some((id, "dashboard")) => (id, Role::Dashboard),
        Some((id, "storefront")) => (id, Role::Storefront),
        Some((id, "server")) => (id, Role::Server),
        Some(_) => return Err(Fault::NotFound("service")),
    };
    let instance = match (id.parse::<InstanceId>(), id.parse::<AppId>()) {
        (Ok(instance), _) => instance,
        (_, Ok(app)) => match instance_of_app(store, app, InstanceKind::Backend)? {
            Some(backend) => backend,
            None => instance_of_app(store, app, InstanceKind::Market)?
                .ok_or(Fault::NotFound("instance"))?,
        },
        _ => return Err(Fault::NotFound("instance")),
    };
    let found = store.get::<Instances>(&instance)?;
    let found = found.filter(|found| !found.is_deleted());
    Ok((instance, role, found.ok_or(Fault::NotFound("instance"))?))
}

/// The instance of this kind of an app.
pub fn instance_of_app(
    store: &Store,
    app: AppId,
    kind: InstanceKind,
) -> Result<Option<InstanceId>, Fault> {
    store.holder(&InstanceClaim::of(app, kind))
}
