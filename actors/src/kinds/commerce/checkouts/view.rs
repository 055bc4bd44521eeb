//! What callers and webhooks see of checkouts.

use super::State;
use crate::runtime::event::Event;
use CheckoutState as S;
use contract::{
    CheckoutId, Fault,
    checkouts::{
        Checkout, CheckoutSession, CheckoutState, CheckoutStatus, PaymentStatus, Reference,
        SubscriptionCheck,
    },
    webhooks::EventType,
};

/// The whole checkout.
pub(crate) fn view(id: CheckoutId, state: &State) -> Checkout {
    let (payment, price) = (state.payment.as_ref(), &state.ordered.price);
    let is_paid = matches!(state.state, S::Paid | S::Settling | S::Settled | S::AmountMismatch);
    Checkout {
        id,
        reference: Reference(id),
        app_id: state.app_id,
        flow: price.flow(),
        store_id: state.ordered.store_id.clone(),
        provider: state.provider,
        state: state.state,
        total: state.total.clone(),
        checkout_url: state
            .opened
            .as_ref()
            .filter(|_| state.state == S::AwaitingPayment)
            .and_then(|opened| opened.url.clone()),
        customer: state.ordered.customer.clone(),
        payment_plan_code: price.plan().cloned(),
        metadata: state.ordered.metadata.clone(),
        paid: payment.filter(|_| is_paid).and_then(|payment| payment.amount.clone()),
        paid_at: payment.and_then(|payment| payment.paid_at),
        refunded_amount: payment.map_or(0, |payment| payment.refunded),
        dispute: payment.and_then(|payment| payment.dispute),
        provider_payment_id: payment.and_then(|payment| payment.id.clone()),
        order_code: state.order.as_ref().map(|order| order.code.clone()),
        subscription_id: state.subscription,
        problem: state.problem.as_ref().map(|problem| problem.text.clone()),
        settled_by_hand: state.by_hand.clone(),
        next_attempt_at: state.due,
        settled_at: state.settled_at,
        created_at: state.created_at,
        expires_at: state.expires_at,
    }
}

/// What the caller who opened the checkout sends the buyer to. `None` while there is no page.
pub(crate) fn session(id: CheckoutId, state: &State) -> Option<CheckoutSession> {
    let (opened, total) = (state.opened.as_ref()?, state.total.clone()?);
    Some(CheckoutSession {
        reference: Reference(id),
        checkout_url: opened.url.clone()?,
        access_code: opened.access_code.clone(),
        expires_at: opened.expires_at,
        amount: total.amount,
        currency: total.currency,
    })
}

/// What a thank-you page needs.
pub(crate) fn status(
    id: CheckoutId,
    state: &State,
    subscription: Option<SubscriptionCheck>,
) -> Result<CheckoutStatus, Fault> {
    let total = state.total.clone().ok_or_else(|| {
        Fault::NotNow(
            "this checkout has no price yet: svc_checkout_create is under way; ask again in a moment"
                .into(),
        )
    })?;
    Ok(CheckoutStatus {
        reference: Reference(id),
        status: match state.state {
            S::Created | S::OrderBuilding | S::Initialized | S::AwaitingPayment => {
                PaymentStatus::Pending
            }
            S::Paid | S::Settling | S::Settled => PaymentStatus::Paid,
            S::Failed | S::AmountMismatch => PaymentStatus::Failed,
            S::Abandoned | S::Expired => PaymentStatus::Abandoned,
        },
        amount: total.amount,
        currency: total.currency,
        paid_at: state.payment.as_ref().and_then(|payment| payment.paid_at),
        order_code: state.order.as_ref().map(|order| order.code.clone()),
        subscription,
    })
}

/// What a change tells webhooks.
pub(super) fn events(id: CheckoutId, before: Option<&State>, after: &State) -> Vec<Event> {
    let was = before.map(|before| before.state);
    let is_paid = |state: S| matches!(state, S::Paid | S::Settling | S::Settled);
    let refunded = |state: &State| state.payment.as_ref().map_or(0, |payment| payment.refunded);
    let disputed = |state: &State| state.payment.as_ref().and_then(|payment| payment.dispute);
    let became = |state| after.state == state && was != Some(state);
    let happened = [
        (is_paid(after.state) && !was.is_some_and(is_paid), EventType::CheckoutPaid),
        (became(S::Settled), EventType::CheckoutSettled),
        (
            after.state == S::Settling && after.alarmed && before.is_some_and(|b| !b.alarmed),
            EventType::CheckoutNotSettled,
        ),
        (became(S::AmountMismatch), EventType::CheckoutAmountMismatch),
        (became(S::Failed), EventType::CheckoutFailed),
        (became(S::Expired), EventType::CheckoutExpired),
        (refunded(after) > before.map_or(0, refunded), EventType::CheckoutRefunded),
        (disputed(after) != before.and_then(disputed), EventType::CheckoutDisputed),
    ];
    let record = view(id, after);
    let events = happened.into_iter().filter(|(happened, _)| *happened);
    events.map(|(_, kind)| Event::new(kind, after.app_id, &record)).collect()
}
