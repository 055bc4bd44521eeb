//! The handlers of the group Checkout and payments that are about channels of shops.

use super::{Command, CommerceChannels, New, State, access::reach, rules::CommerceChannelClaim};
use crate::{
    call::{context::Call, pagination},
    kinds::checkouts::CheckoutIndex,
    kinds::checkouts::Checkouts,
    platform::Platform,
    runtime::resource::Input,
};
use commerce::RemoteError;
use contract::{
    CommerceChannelId, Fault, Page, Serves,
    checkouts::{
        CommerceChannel, DeleteCommerceChannel, DeletedCommerceChannel, GetCommerceChannels,
        RegisterCommerceChannel,
    },
    text::MASK,
};
use std::time::Duration;

/// How long the shop may take to answer the check.
const CHECK_WITHIN: Duration = Duration::from_secs(25);

fn view(id: CommerceChannelId, state: &State) -> CommerceChannel {
    let New { app_id, store_id, channel_token, admin_api_url, admin_token: _, label, check } =
        state.registered.clone();
    CommerceChannel {
        id,
        channel_token,
        app_id,
        store_id,
        admin_api_url,
        admin_token: MASK.into(),
        label,
        check,
        created_at: state.created_at,
        updated_at: state.updated_at,
    }
}

impl Serves<RegisterCommerceChannel> for Platform {
    async fn serve(&self, cx: &Call, p: RegisterCommerceChannel) -> Result<CommerceChannel, Fault> {
        let world = &self.world;
        let token = p.admin_token.as_str().to_owned();
        let reached = reach(world, p.app_id, &p.admin_api_url, &p.channel_token, p.admin_token)?;
        let checked = match reached {
            Ok(channel) => {
                let check = world.ports.shop.check_access(&channel);
                world.ports.clock.limit(CHECK_WITHIN, check).await
            }
            Err(error) => Some(Err(error)),
        };
        let check = match checked {
            Some(Ok(check)) => check,
            Some(Err(RemoteError::Refused(why))) => {
                return Err(Fault::invalid("adminApiUrl", why));
            }
            Some(Err(RemoteError::Busy { why, .. } | RemoteError::Unclear(why))) => {
                tracing::warn!(app = %p.app_id, why, "a channel of a shop could not be checked");
                return Err(Fault::Unavailable("the shop"));
            }
            None => return Err(Fault::Unavailable("the shop")),
        };
        let claim = CommerceChannelClaim::Channel { token: p.channel_token.clone() };
        let held = world.store.holder::<CommerceChannels>(&claim)?;
        let id = held.unwrap_or_else(|| world.ports.random.id(cx.now));
        let sealed = world.ports.sealer.seal(&id.to_string(), &token);
        let new = Box::new(New {
            app_id: p.app_id,
            store_id: p.store_id,
            channel_token: p.channel_token,
            admin_api_url: p.admin_api_url,
            admin_token: sealed.map_err(|_| Fault::Internal)?,
            label: p.label,
            check,
        });
        let input = match held {
            Some(_) => Input::Command(Command::Replace(new)),
            None => Input::Create(new),
        };
        let show = move |state: &State| Ok(view(id, state));
        cx.change_or_create(world, &self.owners()?.commerce_channels, id, input, show).await
    }
}

impl Serves<GetCommerceChannels> for Platform {
    async fn serve(
        &self,
        _: &Call,
        p: GetCommerceChannels,
    ) -> Result<Page<CommerceChannel>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        pagination::whole::<CommerceChannels, _>(store, list, |id, state| Ok(Some(view(id, state))))
    }
}

impl Serves<DeleteCommerceChannel> for Platform {
    async fn serve(
        &self,
        cx: &Call,
        p: DeleteCommerceChannel,
    ) -> Result<DeletedCommerceChannel, Fault> {
        let (world, store) = (&self.world, &self.world.store);
        let claim = CommerceChannelClaim::Channel { token: p.channel_token };
        let id = store.holder::<CommerceChannels>(&claim)?;
        let id = id.ok_or(Fault::NotFound("channel"))?;
        if store.count::<Checkouts>(&CheckoutIndex::Open { channel: id })? > 0 {
            return Err(Fault::NotNow(
                "a checkout of this channel may still be paid, or is not settled; see svc_getCheckouts".into(),
            ));
        }
        let reply = move |_: &State| Ok(DeletedCommerceChannel { deleted: id });
        cx.change(world, &self.owners()?.commerce_channels, id, Command::Remove, reply).await
    }
}
