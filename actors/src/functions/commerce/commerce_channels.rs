//! The handlers of the group Checkout and payments that are about channels of shops.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::{
            checkouts::{CheckoutIndex, Checkouts},
            commerce_channels::{
                Command, CommerceChannels, New, State,
                access::{admin_token, reach},
                rules::CommerceChannelClaim,
            },
        },
        world::World,
    },
    runtime::{pagination, resource::Input},
};
use commerce::RemoteError;
use contract::{
    CommerceChannelId, Fault, Page, Serves,
    checkouts::{
        ChannelCheck, CommerceChannel, DeleteCommerceChannel, DeletedCommerceChannel,
        GetCommerceChannels, RegisterCommerceChannel,
    },
    text::MASK,
};
use std::time::Duration;

/// How long the shop may take to answer the check.
const CHECK_WITHIN: Duration = Duration::from_secs(25);

fn view(id: CommerceChannelId, state: &State) -> CommerceChannel {
    let New { app_id, store_id, channel_token, admin_api_url, label, check, outcome, .. } =
        state.registered.clone();
    CommerceChannel {
        id,
        channel_token,
        app_id,
        store_id,
        admin_api_url,
        admin_token: MASK.into(),
        label,
        check: outcome,
        check_message: check,
        created_at: state.created_at,
        updated_at: state.updated_at,
    }
}

impl Serves<RegisterCommerceChannel> for Platform {
    async fn serve(&self, cx: &Call, p: RegisterCommerceChannel) -> Result<CommerceChannel, Fault> {
        let world = &self.world;
        let claim = CommerceChannelClaim::Channel { token: p.channel_token.clone() };
        let held = world.store.holder::<CommerceChannels>(&claim)?;
        let (check, outcome) = match held {
            Some(id) => match known_check(&self.world, id, &p)? {
                Some(known) => known,
                None => check_channel(&self.world, &p).await?,
            },
            None => check_channel(&self.world, &p).await?,
        };
        let id = held.unwrap_or_else(|| world.ports.random.id(cx.now));
        let sealed = world.ports.sealer.seal(&id.to_string(), p.admin_token.as_str());
        let new = Box::new(New {
            app_id: p.app_id,
            store_id: p.store_id,
            channel_token: p.channel_token,
            admin_api_url: p.admin_api_url,
            admin_token: sealed.map_err(|_| Fault::Internal)?,
            label: p.label,
            check,
            outcome,
        });
        let input = match held {
            Some(_) => Input::Command(Command::Replace(new)),
            None => Input::Create(new),
        };
        let show = move |state: &State| Ok(view(id, state));
        cx.to::<CommerceChannels>(id).change_or_create(input, show).await
    }
}

/// What is known of a channel whose address and token do not change, if it passed.
fn known_check(
    world: &World,
    id: CommerceChannelId,
    p: &RegisterCommerceChannel,
) -> Result<Option<(String, ChannelCheck)>, Fault> {
    let Some(seen) = world.store.get::<CommerceChannels>(&id)? else { return Ok(None) };
    let known = &seen.state.registered;
    let is_same = known.app_id == p.app_id
        && known.admin_api_url == p.admin_api_url
        && admin_token(world, id, known)? == p.admin_token;
    let has_passed = known.outcome == ChannelCheck::Passed;
    Ok((is_same && has_passed).then(|| (known.check.clone(), known.outcome)))
}

/// Asks the shop whether the channel opens.
async fn check_channel(
    world: &World,
    p: &RegisterCommerceChannel,
) -> Result<(String, ChannelCheck), Fault> {
    let token = p.admin_token.clone();
    let reached = reach(world, p.app_id, &p.admin_api_url, &p.channel_token, token)?;
    let checked = match reached {
        Ok(channel) => {
            let check = world.ports.shop.check_access(&channel);
            world.ports.clock.limit(CHECK_WITHIN, check).await
        }
        Err(error) => Some(Err(error)),
    };
    let why = match checked {
        Some(Ok(check)) => return Ok((check, ChannelCheck::Passed)),
        Some(Err(RemoteError::Refused(why))) => {
            return Err(Fault::invalid("adminApiUrl", why));
        }
        Some(Err(RemoteError::Busy { why, .. } | RemoteError::Unclear(why))) => why,
        None => format!("it gave no answer within {} s", CHECK_WITHIN.as_secs()),
    };
    tracing::warn!(app = %p.app_id, why, "a channel of a shop could not be checked");
    let message = format!("The shop did not answer: {why}. Register the channel again later.");
    Ok((message, ChannelCheck::Failed))
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
        let store = &self.world.store;
        let claim = CommerceChannelClaim::Channel { token: p.channel_token };
        let id = store.holder::<CommerceChannels>(&claim)?;
        let id = id.ok_or(Fault::NotFound("channel"))?;
        let open = store.newest::<Checkouts>(&CheckoutIndex::Open { channel: id }, None);
        if open.count_up_to(1)? > 0 {
            return Err(Fault::NotNow(
                "a checkout of this channel may still be paid, or is not settled; delete the channel after \
                 that (svc_getCheckouts shows them)"
                    .into(),
            ));
        }
        let reply = move |_: &State| Ok(DeletedCommerceChannel { deleted: id });
        cx.to::<CommerceChannels>(id).change(Command::Remove, reply).await
    }
}
