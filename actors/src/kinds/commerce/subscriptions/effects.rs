//! The effects of subscriptions: the provider is asked, and the tier of an account follows.

use super::{
    Command, Effect, New, Outcome, State, SubscriptionIndex, Subscriptions,
    rules::SubscriptionClaim,
};
use crate::{
    kinds::{
        commerce::provider_key::provider_key,
        people::accounts::{self, AccountClaim, Accounts},
        world::World,
    },
    runtime::{redecide::redecided, resource::Retry},
};
use contract::{
    AppId, Email, Fault, SubscriptionId, authentication::Tier, checkouts::PaymentProvider,
};
use payments::{RemoteError, Subscription};
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    effect: Effect,
    kept: Snapshot<Subscriptions>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Look => Ok(Outcome::Looked(Box::new(look(&kept.state, &world).await?))),
        Effect::Tier => {
            let State { app_id, seen, told, .. } = &kept.state;
            let email = seen.as_ref().map(|seen| &seen.email);
            // The subscription may have passed from one address to another.
            for email in told.iter().filter(|told| Some(*told) != email).chain(email) {
                follow(&world, *app_id, email).await?;
            }
            Ok(Outcome::Told(email.cloned()))
        }
    }
}

async fn look(
    state: &State,
    world: &World,
) -> Result<Result<Option<Subscription>, RemoteError>, Retry> {
    let key = provider_key(world, state.app_id, state.provider)?;
    let provider = world.ports.payments.get(&state.provider);
    let (Some((key, _)), Some(provider)) = (key, provider) else {
        let name = state.provider.name();
        return Ok(Err(RemoteError::Refused(format!(
            "the app has no credential of the kind {name} any more: store one with \
             svc_setCredential (svc credential set {name})"
        ))));
    };
    Ok(provider.subscription(&key, &state.provider_id).await)
}

/// Keeps what the provider said about a subscription of an app.
pub async fn keep(
    world: &World,
    (app, provider): (AppId, PaymentProvider),
    seen: Subscription,
) -> Result<SubscriptionId, Fault> {
    match known(world, app, provider, &seen.id)? {
        Some(id) => {
            world.to::<Subscriptions>(id).ask(Command::Seen(Box::new(seen))).await?;
            Ok(id)
        }
        None => {
            let new = New { app_id: app, provider, provider_id: seen.id.clone(), seen: Some(seen) };
            create(world, new).await
        }
    }
}

/// Lets the owner of a subscription of which the provider posted a notice ask the provider. One that
/// was not known is kept: people may subscribe at the provider too.
pub async fn noticed(
    world: &World,
    (app, provider): (AppId, PaymentProvider),
    provider_id: &str,
) -> Result<(), Fault> {
    redecided(async || match known(world, app, provider, provider_id)? {
        Some(id) => world.to::<Subscriptions>(id).ask_if_there(Command::Look).await,
        None => {
            let provider_id = provider_id.to_owned();
            // `Stale`: another notice made it meanwhile.
            create(world, New { app_id: app, provider, provider_id, seen: None }).await.map(drop)
        }
    })
    .await
}

async fn create(world: &World, new: New) -> Result<SubscriptionId, Fault> {
    let id: SubscriptionId = world.ports.random.id(world.ports.clock.now());
    world.to::<Subscriptions>(id).create(new).await?;
    Ok(id)
}

fn known(
    world: &World,
    app: AppId,
    provider: PaymentProvider,
    provider_id: &str,
) -> Result<Option<SubscriptionId>, Fault> {
    world.store.holder::<Subscriptions>(&SubscriptionClaim::of(app, provider, provider_id))
}

/// Lets an account have the highest tier that its address pays for in the app of the platform.
async fn follow(world: &World, app: AppId, email: &Email) -> Result<(), Fault> {
    if world.ports.site.platform_app != Some(app) {
        return Ok(());
    }
    let claim = AccountClaim::email(email);
    let Some(user) = world.store.holder::<Accounts>(&claim)? else { return Ok(()) };
    // The owner of another subscription may have changed the tier after this one read it.
    redecided(async || {
        let paid = paid_tier(world, email)?;
        world.to::<Accounts>(user).ask_if_there(accounts::Command::SetPaidTier(paid)).await?;
        if paid_tier(world, email)? == paid { Ok(()) } else { Err(Fault::Stale) }
    })
    .await
}

/// The highest tier that an address pays for. `None`: it pays for none.
pub fn paid_tier(world: &World, email: &Email) -> Result<Option<Tier>, Fault> {
    let site = &world.ports.site;
    let Some(app) = site.platform_app else { return Ok(None) };
    let now = world.ports.clock.now();
    let mut highest = None;
    for found in world.store.newest::<Subscriptions>(&SubscriptionIndex::of(app, email), None) {
        let (_, found) = found?;
        let plan = found.state.seen.as_ref().filter(|_| found.state.is_active(now));
        let tier = plan.and_then(|seen| site.platform_plans.get(&seen.plan));
        highest = highest.max(tier.copied());
    }
    Ok(highest)
}
