//! Where a request for an instance goes. The record is the truth of it: a deployment that switches
//! writes the record, and the next request goes to the new container.

use super::{InstanceClaim, Instances};
use crate::{runtime::store::Store, world::World};
use contract::{
    AppId, Fault, InstanceId,
    instances::{InstanceKind, Role, ServiceState},
};

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The instance.
    pub instance: InstanceId,
    /// Its service.
    pub role: Role,
    /// The port of the loopback address.
    pub port: u16,
}

/// Finds where a request goes: `target` is `app_…` (its backend, or else its market server) or
/// `ins_…`, and may name a service behind a `~`, such as `ins_…~dashboard`.
pub fn route(world: &World, target: &str) -> Result<Route, Fault> {
    let store = &world.store;
    let (id, role) = match target.split_once('~') {
        None => (target, Role::Server),
        Some((id, "dashboard")) => (id, Role::Dashboard),
        Some((id, "storefront")) => (id, Role::Storefront),
        Some((id, "server")) => (id, Role::Server),
        Some(_) => return Err(Fault::NotFound("service")),
    };
    let instance = match (id.parse::<InstanceId>(), id.parse::<AppId>()) {
        (Ok(instance), _) => instance,
        (_, Ok(app)) => match of_app(store, app, InstanceKind::Backend)? {
            Some(backend) => backend,
            None => of_app(store, app, InstanceKind::Market)?.ok_or(Fault::NotFound("instance"))?,
        },
        _ => return Err(Fault::NotFound("instance")),
    };
    let found = store.get::<Instances>(&instance)?;
    let found = found.filter(|found| !found.is_deleted());
    let found = found.ok_or(Fault::NotFound("instance"))?;
    let part = found.state.part(role).ok_or(Fault::NotFound("service"))?;
    // Before everything was looked at once, a port may be another container's by now.
    let trusted = world.engine_health.has_joined() && part.live.state == ServiceState::Running;
    match part.live.port.filter(|_| trusted) {
        Some(port) => Ok(Route { instance, role, port }),
        None => Err(Fault::Unavailable("the server of this instance, which does not run,")),
    }
}

/// The instance of this kind that an app has.
pub fn of_app(store: &Store, app: AppId, kind: InstanceKind) -> Result<Option<InstanceId>, Fault> {
    store.holder(&InstanceClaim::of(app, kind))
}
