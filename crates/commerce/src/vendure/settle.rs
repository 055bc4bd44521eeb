//! The end of an order: its payment is recorded, or it is cancelled.

use super::{
    api::Api,
    build::opened,
    documents::{
        CANCEL, ChangeResult, DELETE_DRAFT, Deleted, LOOK_AT_ORDER, MutationResult, OrderReply,
        PAY, Paid, ShopOrder, TRANSITION,
    },
    next::{foreign, is_empty, note},
    summary::Scale,
};
use crate::RemoteError;
use contract::{checkouts::Reference, money::Money};
use serde_json::json;

/// What the shop calls the method of payment.
const METHOD: &str = "svc";
/// The states of an order that can be paid.
const ARRANGING: &str = "ArrangingPayment";
const ADDING: &str = "AddingItems";

pub(super) async fn settle(
    api: &Api<'_>,
    id: &str,
    reference: Reference,
    paid: &Money,
) -> Result<(), RemoteError> {
    let (order, precision) = look(api, id).await?;
    let refused = |why: String| RemoteError::Refused(why);
    let order = order.ok_or_else(|| {
        refused(format!("The order {id} of {reference} is not in the shop any more."))
    })?;
    if is_settled(&order, reference, paid, precision)? {
        return Ok(());
    }
    check(&order, reference, paid, precision)?;
    if order.state == ADDING {
        // A customer who signs in to the shop finds the order as the cart, and may take it up again.
        let variables = json!({"order": id, "state": ARRANGING});
        let made: MutationResult<Option<ChangeResult>> = api.mutate(TRANSITION, variables).await?;
        if let Some(said) = made.result.and_then(|it| it.error()) {
            return Err(said.refused(&format!("The order {} is a cart again.", order.code)));
        }
    }
    let payment = json!({
        "orderId": id,
        "method": METHOD,
        "transactionId": reference,
        "metadata": {"reference": reference, "paid": paid.to_string()},
    });
    let made: MutationResult<Paid> = api.mutate(PAY, json!({"payment": payment})).await?;
    let (order, said) = match made.result {
        Paid::Order(order) => (Some(*order), None),
        // Somebody else may have recorded it in the meantime.
        Paid::Error(outcome) => (look(api, id).await?.0, outcome.error()),
    };
    let is_settled = match order {
        Some(order) => is_settled(&order, reference, paid, precision)?,
        None => false,
    };
    match (is_settled, said) {
        (true, _) => Ok(()),
        (false, Some(said)) => Err(said.refused("The shop does not record the payment.")),
        (false, None) => Err(refused("The shop shows no payment of this reference.".into())),
    }
}

/// Checks that the order is the one of this reference, waits for a payment, and costs what was paid.
fn check(
    order: &ShopOrder,
    reference: Reference,
    paid: &Money,
    precision: u8,
) -> Result<(), RemoteError> {
    let (code, state) = (&order.code, &order.state);
    if !order.has_note(&note(reference)) {
        return Err(RemoteError::Refused(foreign(order)));
    }
    if ![ARRANGING, ADDING].contains(&state.as_str()) {
        return Err(RemoteError::Refused(format!(
            "The payment {reference} of {paid} cannot be recorded for the order {code}, which is \
             in the state {state} in the shop. A shopkeeper can add the payment to the order, or \
             somebody refunds it."
        )));
    }
    let total = total(order, precision)?;
    if total != *paid {
        return Err(RemoteError::Refused(format!(
            "The order {code} costs {total} in the shop, and {paid} were paid for it."
        )));
    }
    Ok(())
}

/// Whether the order has a payment of this reference. Refused if it is of another sum, or undone.
fn is_settled(
    order: &ShopOrder,
    reference: Reference,
    paid: &Money,
    precision: u8,
) -> Result<bool, RemoteError> {
    let name = reference.to_string();
    let payment = order.payments().iter().find(|it| it.transaction_id.as_ref() == Some(&name));
    let Some(payment) = payment else { return Ok(false) };
    let code = &order.code;
    if !["Settled", "Authorized"].contains(&payment.state.as_str()) {
        return Err(RemoteError::Refused(format!(
            "The payment {reference} of the order {code} is in the state {} in the shop.",
            payment.state
        )));
    }
    let scale = Scale::of(&order.currency_code, precision).map_err(RemoteError::Refused)?;
    match scale.exactly(payment.amount) {
        Ok(recorded) if recorded == *paid => Ok(true),
        _ => Err(RemoteError::Refused(format!(
            "The shop has recorded {} {} with {precision} decimals as the payment {reference} of \
             the order {code}, and {paid} were paid. A shopkeeper must correct it.",
            payment.amount, order.currency_code
        ))),
    }
}

fn total(order: &ShopOrder, precision: u8) -> Result<Money, RemoteError> {
    Scale::of(&order.currency_code, precision)
        .and_then(|scale| scale.exactly(order.total_with_tax))
        .map_err(RemoteError::Refused)
}

pub(super) async fn cancel(
    api: &Api<'_>,
    id: &str,
    reference: Reference,
) -> Result<(), RemoteError> {
    let (order, _) = look(api, id).await?;
    let Some(order) = order else { return Ok(()) };
    let (code, state) = (&order.code, order.state.as_str());
    if state == "Cancelled" {
        return Ok(());
    }
    let is_draft = state == "Draft";
    // The order of a step that died before its note.
    let is_new = is_draft && is_empty(&order);
    if !is_new && !order.has_note(&note(reference)) {
        return Err(RemoteError::Refused(foreign(&order)));
    }
    if is_draft {
        let made: MutationResult<Deleted> = api.mutate(DELETE_DRAFT, json!({"order": id})).await?;
        return match made.result.result.as_str() {
            "DELETED" => Ok(()),
            // Such as one that somebody deleted since: the next look tells.
            _ => Err(RemoteError::Unclear(format!(
                "The draft {code} may be there still: {}",
                made.result.message.unwrap_or_default()
            ))),
        };
    }
    let is_paid = order.payments().iter().any(|it| ["Settled", "Authorized"].contains(&&*it.state));
    if is_paid || ![ARRANGING, ADDING].contains(&state) {
        return Err(RemoteError::Refused(format!(
            "The order {code} is not cancelled: it is in the state {state} in the shop{}.",
            if is_paid { ", with a payment" } else { "" }
        )));
    }
    let variables = json!({"order": id, "reason": format!("Nobody paid {reference}.")});
    let made: MutationResult<ChangeResult> = api.mutate(CANCEL, variables).await?;
    match made.result.error() {
        Some(said) => Err(said.refused(&format!("The order {code} is not cancelled."))),
        None => Ok(()),
    }
}

/// The order, if it is there, and the decimals of the shop's amounts.
async fn look(api: &Api<'_>, id: &str) -> Result<(Option<ShopOrder>, u8), RemoteError> {
    let look: OrderReply = api.query(LOOK_AT_ORDER, json!({"id": id})).await?;
    opened(api, &look.active_channel.token)?;
    Ok((look.order, look.global_settings.precision()))
}
