//! Opens channels of shops.

use super::{CommerceChannels, New, State, rules::CommerceChannelClaim};
use crate::{
    kinds::{
        hosting::instances::{instance_of_app, route},
        world::World,
    },
    ports::sealed::SealError,
};
use commerce::{Channel, RemoteError};
use contract::{
    AppId, CommerceChannelId, Fault, Name, WebUrl,
    instances::{InstanceKind, Role},
    text::AccessToken,
};

/// The channel that is registered for a store of an app.
pub fn of_store(world: &World, app: AppId, store: &Name) -> Result<CommerceChannelId, Fault> {
    let held = world.store.holder::<CommerceChannels>(&CommerceChannelClaim::store(app, store))?;
    held.ok_or_else(|| {
        Fault::NotNow(format!(
            "no channel of a shop is registered for the store {store}: an operator registers it \
             with svc_admin_registerCommerceChannel"
        ))
    })
}

/// A channel with its token. Refused if it is no longer registered.
pub fn open(world: &World, id: CommerceChannelId) -> Result<Result<Channel, RemoteError>, Fault> {
    let Some(seen) = world.store.get::<CommerceChannels>(&id)? else {
        let why = "the channel of the shop is no longer registered";
        return Ok(Err(RemoteError::Refused(why.into())));
    };
    let State { registered, .. } = &seen.state;
    let token = admin_token(world, id, registered)?;
    let url = &registered.admin_api_url;
    reach(world, registered.app_id, url, &registered.channel_token, token)
}

/// The token of the administrator.
pub(crate) fn admin_token(
    world: &World,
    id: CommerceChannelId,
    registered: &New,
) -> Result<AccessToken, Fault> {
    let opened = world.ports.sealer.open(&id.to_string(), &registered.admin_token);
    let token = opened.map_err(|e: SealError| {
        tracing::error!(%id, error = %e, "the token of a channel cannot be opened");
        Fault::Internal
    })?;
    token.parse().map_err(|_| Fault::Internal)
}

/// How to reach a channel. A market server of the app runs here, behind the service itself: it is
/// asked at its own port. Any other address inside is for the operator to allow.
pub(crate) fn reach(
    world: &World,
    app: AppId,
    url: &WebUrl,
    channel_token: &Name,
    admin_token: AccessToken,
) -> Result<Result<Channel, RemoteError>, Fault> {
    let channel = |admin_api_url, is_own| Channel {
        admin_api_url,
        admin_token,
        channel_token: channel_token.as_str().to_owned(),
        is_own,
    };
    let own = instance_of_app(&world.store, app, InstanceKind::Market)?;
    let path = own.and_then(|id| {
        let site = &world.ports.site;
        let by_name = site.service_url((id, InstanceKind::Market), app, Role::Server);
        let known = [by_name, site.path_url(&id.to_string())];
        let path = known.iter().find_map(|known| url.as_str().strip_prefix(known.as_str()));
        Some((id, path?.strip_prefix('/')?.to_owned()))
    });
    let Some((id, path)) = path else { return Ok(Ok(channel(url.clone(), false))) };
    let server = match route(world, &id.to_string()) {
        Ok(route) => route.server,
        Err(Fault::Unavailable(_) | Fault::NotFound(_)) => {
            let why = "the market server of this app does not run: start it".into();
            return Ok(Err(RemoteError::Busy { why, after: std::time::Duration::from_secs(5) }));
        }
        Err(fault) => return Err(fault),
    };
    let url = format!("http://{server}/{path}").parse().map_err(|_| Fault::Internal)?;
    Ok(Ok(channel(url, true)))
}
