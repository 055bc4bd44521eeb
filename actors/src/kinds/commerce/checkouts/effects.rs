//! The effects of checkouts: requests to the payment provider and to the shop.

use super::{Checkouts, Effect, Outcome, Price, Settlement, State, alarm};
use crate::{
    kinds::{
        commerce::{commerce_channels, provider_key::provider_key, subscriptions},
        delivery::credentials::Use,
        world::World,
    },
    runtime::resource::Retry,
};
use contract::{CheckoutId, checkouts::Reference};
use payments::{PaymentOrder, Provider, ProviderKey, RemoteError};
use std::sync::Arc;
use store::Snapshot;

/// An answer of a provider or a shop.
type RemoteResult<T> = Result<T, RemoteError>;

pub(super) async fn perform(
    effect: Effect,
    id: CheckoutId,
    kept: Snapshot<Checkouts>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let (state, reference) = (&kept.state, Reference(id));
    Ok(match effect {
        Effect::Price => Outcome::Priced(price(state, &world).await?),
        Effect::Build => Outcome::Built(build(state, reference, &world).await?),
        Effect::Open => open(state, reference, &world).await?,
        Effect::Look => Outcome::Looked(Box::new(look(state, reference, &world).await?)),
        Effect::Settle => Outcome::Settled(settle(state, reference, &world).await?),
        Effect::Alarm => {
            alarm::raise(state, reference, &world).await;
            Outcome::Alarmed
        }
        Effect::Cancel => {
            cancel(state, reference, &world).await?;
            Outcome::Cancelled
        }
        Effect::Close => {
            close(state, &world).await?;
            Outcome::Closed
        }
    })
}

/// A provider with the app's key to it, and the use of the credential.
struct ProviderAccess {
    provider: Arc<dyn Provider>,
    key: ProviderKey,
    used: Use,
}

fn access(state: &State, by: &str, world: &World) -> Result<RemoteResult<ProviderAccess>, Retry> {
    let name = state.provider;
    let Some((key, credential)) = provider_key(world, state.app_id, name)? else {
        return Ok(Err(RemoteError::Refused(format!(
            "the app has no credential of the kind {} any more: store one with svc_setCredential \
             (svc credential set {})",
            name.name(),
            name.name()
        ))));
    };
    let Some(provider) = world.ports.payments.get(&name).cloned() else {
        return Ok(Err(RemoteError::Refused("this provider is not configured here".into())));
    };
    let used = Use::of(world, &credential, by);
    Ok(Ok(ProviderAccess { provider, key, used }))
}

/// Leaves the effect with the provider's refusal, as its answer.
macro_rules! allowed {
    ($answer:expr) => {
        match $answer {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}

async fn price(
    state: &State,
    world: &World,
) -> Result<RemoteResult<payments::SubscriptionPlan>, Retry> {
    let Some(code) = state.ordered.price.plan() else {
        return Ok(Err(RemoteError::Refused("this checkout has no plan".into())));
    };
    let ProviderAccess { provider, key, .. } = allowed!(access(state, "", world)?);
    Ok(provider.plan(&key, code).await)
}

async fn build(
    state: &State,
    reference: Reference,
    world: &World,
) -> Result<RemoteResult<(commerce::OrderProgress, Option<commerce::Built>)>, Retry> {
    let Price::Shop { channel, lines, shipping_address, shipping_method, .. } =
        &state.ordered.price
    else {
        return Ok(Err(RemoteError::Refused("this checkout has no order in a shop".into())));
    };
    let channel = allowed!(commerce_channels::open(world, *channel)?);
    let order = commerce::PurchaseOrder {
        reference,
        lines: lines.clone(),
        customer: state.ordered.customer.clone(),
        shipping_address: shipping_address.as_deref().cloned(),
        shipping_method: shipping_method.as_ref().map(|code| code.as_str().to_owned()),
    };
    Ok(world.ports.shop.build(&channel, &order, &state.building).await)
}

async fn open(state: &State, reference: Reference, world: &World) -> Result<Outcome, Retry> {
    let ProviderAccess { provider, key, used } = match access(state, &reference.to_string(), world)?
    {
        Ok(access) => access,
        Err(refused) => return Ok(Outcome::Opened(Err(refused), None)),
    };
    let Some(total) = state.total.clone() else {
        let why = "the price of this checkout is not known".into();
        return Ok(Outcome::Opened(Err(RemoteError::Refused(why)), None));
    };
    let order = PaymentOrder {
        reference,
        total,
        lines: state.lines.clone(),
        customer: state.ordered.customer.clone(),
        plan: state.ordered.price.plan().cloned(),
        return_to: state.ordered.return_to.clone(),
        metadata: (*state.ordered.metadata).clone(),
        expires_at: state.expires_at,
    };
    let opened = provider.open(&key, &order).await;
    used.note(world).await;
    Ok(Outcome::Opened(opened, Some(Box::new(used))))
}

async fn look(
    state: &State,
    reference: Reference,
    world: &World,
) -> Result<RemoteResult<Option<payments::Payment>>, Retry> {
    let ProviderAccess { provider, key, .. } = allowed!(access(state, "", world)?);
    let session = state.opened.as_ref().and_then(|opened| opened.session.as_deref());
    Ok(provider.payment(&key, reference, session).await)
}

async fn settle(
    state: &State,
    reference: Reference,
    world: &World,
) -> Result<RemoteResult<Settlement>, Retry> {
    let lost = || RemoteError::Refused("the record of this checkout is incomplete".into());
    match &state.ordered.price {
        Price::Shop { channel, .. } if state.pays_order() => {
            let channel = allowed!(commerce_channels::open(world, *channel)?);
            let (Some(order), Some(total)) = (&state.order, &state.total) else {
                return Ok(Err(lost()));
            };
            let settled = world.ports.shop.settle(&channel, &order.id, reference, total).await;
            Ok(settled.map(|()| Settlement::Order))
        }
        Price::Plan { .. } | Price::Shop { plan: Some(_), .. } => {
            let Some(payment) = &state.payment else { return Ok(Err(lost())) };
            let ProviderAccess { provider, key, .. } = allowed!(access(state, "", world)?);
            let Some(seen) = allowed!(provider.subscription_of(&key, payment).await) else {
                return Ok(Ok(Settlement::NotYet));
            };
            let id = subscriptions::keep(world, (state.app_id, state.provider), seen).await?;
            Ok(Ok(Settlement::Subscription(id)))
        }
        Price::Lines { .. } | Price::Shop { plan: None, .. } => Ok(Ok(Settlement::Order)),
    }
}

/// Cancels an order that nobody paid. A refusal of the shop leaves the order as it is.
async fn cancel(state: &State, reference: Reference, world: &World) -> Result<(), Retry> {
    let Price::Shop { channel, .. } = &state.ordered.price else { return Ok(()) };
    let Some(order) = &state.building.order else { return Ok(()) };
    let cancelled = match commerce_channels::open(world, *channel)? {
        Ok(channel) => world.ports.shop.cancel(&channel, order, reference).await,
        Err(refused) => Err(refused),
    };
    match cancelled {
        Ok(()) => Ok(()),
        Err(RemoteError::Refused(why)) => {
            tracing::warn!(%reference, order, why, "an order that nobody paid stays in the shop");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Closes the page of a checkout whose app is deleted, if the provider can do that.
async fn close(state: &State, world: &World) -> Result<(), Retry> {
    let session = state.opened.as_ref().and_then(|opened| opened.session.as_deref());
    let Some(session) = session else { return Ok(()) };
    let closed = match access(state, "", world)? {
        Ok(ProviderAccess { provider, key, .. }) => provider.close(&key, session).await.map(drop),
        Err(refused) => Err(refused),
    };
    match closed {
        Err(error @ (RemoteError::Busy { .. } | RemoteError::Unclear(_))) => Err(error.into()),
        Ok(()) | Err(RemoteError::Refused(_)) => Ok(()),
    }
}
