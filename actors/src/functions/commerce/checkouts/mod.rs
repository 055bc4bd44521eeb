//! The handlers of the group Checkout and payments that are about checkouts.

pub mod create;
pub mod notices;
pub mod unsettled;

use super::subscriptions::check_subscription;
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::checkouts::{
            CheckoutIndex, Checkouts, Command, State,
            view::{status, view},
        },
        world::World,
    },
    runtime::pagination,
};
use contract::{
    CheckoutId, Fault, Page, Serves, Timestamp,
    checkouts::{
        Checkout, CheckoutState, CheckoutStatus, GetCheckout, GetCheckouts, GetUnsettledCheckouts,
        Reference, SettleCheckout, VerifyCheckout,
    },
};
use std::time::Duration;

/// How long a call waits for the provider and the shop.
const LOOKS_WITHIN: Duration = Duration::from_secs(12);
/// A payment that was looked at within this time is not looked at again for a caller.
const FRESH: Duration = Duration::from_secs(2);

impl Serves<VerifyCheckout> for Platform {
    async fn serve(&self, cx: &Call, p: VerifyCheckout) -> Result<CheckoutStatus, Fault> {
        verify_checkout(&self.world, p.reference, cx.now).await
    }
}

/// Looks at the payment, unless that cannot change anything.
pub async fn verify_checkout(
    world: &World,
    reference: Reference,
    now: Timestamp,
) -> Result<CheckoutStatus, Fault> {
    let Reference(id) = reference;
    let seen = world.store.get::<Checkouts>(&id)?;
    let seen = seen.filter(|seen| !seen.state.deleting).ok_or(Fault::NotFound("checkout"))?;
    let is_fresh_in = |state: &State| state.looked_at.is_some_and(|at| now < at + FRESH);
    let is_fresh = is_fresh_in(&seen.state);
    if !is_undecided(&seen.state) || (is_fresh && !seen.state.looking) {
        return status_now(world, id, &seen.state, now);
    }
    if !is_fresh {
        world.to::<Checkouts>(id).ask(Command::Look).await?;
    }
    // The buyer waits for what is known of the payment, and not for the shop.
    let _ = world.to::<Checkouts>(id).wait_until(LOOKS_WITHIN, |state| !is_undecided(state)).await;
    let state = checkout(world, id)?;
    let is_unreachable = state.problem.as_ref().is_some_and(|problem| problem.unreachable);
    if is_undecided(&state) && (!is_fresh_in(&state) || is_unreachable) {
        return Err(Fault::Unavailable("the payment provider"));
    }
    status_now(world, id, &state, now)
}

/// What is known of a payment, without asking the provider.
pub fn checkout_status(
    world: &World,
    reference: Reference,
    now: Timestamp,
) -> Result<CheckoutStatus, Fault> {
    let Reference(id) = reference;
    status_now(world, id, &checkout(world, id)?, now)
}

/// Whether the provider may say something else than what is known.
fn is_undecided(state: &State) -> bool {
    use CheckoutState as S;
    state.is_open() && matches!(state.state, S::AwaitingPayment | S::Failed | S::Abandoned)
}

fn status_now(
    world: &World,
    id: CheckoutId,
    state: &State,
    now: Timestamp,
) -> Result<CheckoutStatus, Fault> {
    let subscription = match state.subscription {
        Some(subscription) => check_subscription(world, subscription, now)?,
        None => None,
    };
    status(id, state, subscription)
}

impl Serves<GetCheckouts> for Platform {
    async fn serve(&self, _: &Call, p: GetCheckouts) -> Result<Page<Checkout>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        let of = (p.app_id, p.state);
        pagination::children::<Checkouts, _>(store, of, list, false, |id, seen| {
            Ok(Some(view(id, &seen.state)))
        })
    }
}

impl Serves<GetCheckout> for Platform {
    async fn serve(&self, cx: &Call, _: GetCheckout) -> Result<Checkout, Fault> {
        let (id, seen) = cx.ancestry.checkout()?;
        Ok(view(id, &seen.state))
    }
}

impl Serves<SettleCheckout> for Platform {
    async fn serve(&self, cx: &Call, p: SettleCheckout) -> Result<Checkout, Fault> {
        let Reference(id) = p.reference;
        let reply = move |state: &State| Ok(view(id, state));
        let command = p.by_hand.map_or(Command::Settle, Command::SettledByHand);
        cx.to::<Checkouts>(id).change_and_wait(command, LOOKS_WITHIN, reply).await
    }
}

impl Serves<GetUnsettledCheckouts> for Platform {
    async fn serve(&self, _: &Call, p: GetUnsettledCheckouts) -> Result<Page<Checkout>, Fault> {
        let (store, entry) = (&self.world.store, CheckoutIndex::Unsettled);
        pagination::counted::<Checkouts, _>(
            store,
            &entry,
            (p.limit, p.cursor),
            false,
            |id, seen| Ok(Some(view(id, &seen.state))),
        )
    }
}

/// The checkout, unless it is being deleted.
fn checkout(world: &World, id: CheckoutId) -> Result<State, Fault> {
    let seen = world.store.get::<Checkouts>(&id)?.filter(|seen| !seen.state.deleting);
    Ok(seen.ok_or(Fault::NotFound("checkout"))?.state.clone())
}
