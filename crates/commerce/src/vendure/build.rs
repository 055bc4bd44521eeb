//! The building of orders: look, compare, do the next missing thing.

use super::{
    api::{Api, RequestFailure},
    documents::{
        ADD, ADJUST, Address, CREATE, ChangeResult, Created, Customers, DELETE_DRAFT, Deleted,
        FIND_CUSTOMER, Guest, LOOK, MARK, MutationResult, OrderReply, Quotes, REMOVE,
        SET_BILLING_ADDRESS, SET_CUSTOMER, SET_SHIPPING_ADDRESS, SET_SHIPPING_METHOD,
        SHIPPING_METHODS, ShopOrder, ShopVariant, TRANSITION,
    },
    next::{self, DraftChange},
    summary::built,
};
use crate::{Built, OrderProgress, PurchaseOrder, RemoteError};
use serde_json::{Value, json};

/// One step: at most one change.
pub(super) async fn step(
    api: &Api<'_>,
    order: &PurchaseOrder,
    progress: &OrderProgress,
) -> Result<(OrderProgress, Option<Built>), RemoteError> {
    let known = progress.order.as_deref();
    let asked = json!({
        "id": known.unwrap_or_default(),
        "isThere": known.is_some(),
        "variants": next::filter(order),
    });
    let look: OrderReply = api.query(LOOK, asked).await?;
    opened(api, &look.active_channel.token)?;
    let precision = look.global_settings.precision();
    let wanted = next::wanted(order, &look.product_variants.items);
    // A draft that somebody deleted in the shop is built again.
    let Some(found) = look.order else {
        wanted.map_err(RemoteError::Refused)?;
        let made: MutationResult<Created> = api.mutate(CREATE, json!({})).await?;
        return Ok((OrderProgress { order: Some(made.result.id) }, None));
    };
    let is_draft = found.state == "Draft";
    let is_marked = found.has_note(&next::note(order.reference));
    let is_new = is_draft && next::is_empty(&found);
    if !is_marked && !is_new {
        return Err(RemoteError::Refused(next::foreign(&found)));
    }
    match found.state.as_str() {
        "Draft" => {}
        "ArrangingPayment" => {
            let built = built(&found, precision).map_err(RemoteError::Refused)?;
            return Ok((progress.clone(), Some(built)));
        }
        state => {
            return Err(RemoteError::Refused(format!(
                "The order {} cannot be paid any more: it is in the state {state} in the shop.",
                found.code
            )));
        }
    }
    let draft = Draft { api, order, found: &found, precision };
    let done = match wanted {
        Ok(_) if !is_marked => draft.perform(DraftChange::Mark).await,
        Ok(wanted) => draft.perform(next::next(order, &found, &wanted)).await,
        Err(why) => Err(RemoteError::Refused(why)),
    };
    match done {
        Ok(()) => Ok((progress.clone(), None)),
        Err(RemoteError::Refused(why)) => Err(draft.give_up(why).await),
        Err(unanswered) => Err(unanswered),
    }
}

/// Refuses an answer of another channel: a shop that names the header of channels differently
/// answers for its default channel.
pub(super) fn opened(api: &Api<'_>, channel_token: &str) -> Result<(), RemoteError> {
    if channel_token == api.channel_token() {
        return Ok(());
    }
    Err(RemoteError::Refused(
        "The shop answers for another channel than that of the token: it must read the token from \
         the header vendure-token."
            .into(),
    ))
}

struct Draft<'a> {
    api: &'a Api<'a>,
    order: &'a PurchaseOrder,
    found: &'a ShopOrder,
    precision: u8,
}

impl Draft<'_> {
    async fn perform(&self, next: DraftChange) -> Result<(), RemoteError> {
        let id = &self.found.id;
        match next {
            DraftChange::Mark => {
                let note = next::note(self.order.reference);
                let marked: Result<MutationResult<Created>, _> =
                    self.api.mutate(MARK, json!({"order": id, "note": note})).await;
                Ok(marked.map(drop)?)
            }
            DraftChange::Remove { line } => {
                self.change(REMOVE, json!({"order": id, "line": line})).await
            }
            DraftChange::Add { variant, quantity } => {
                let change = json!({"order": id, "variant": variant.id, "quantity": quantity});
                self.change_quantity(ADD, change, &variant, quantity).await
            }
            DraftChange::Adjust { line, variant, quantity } => {
                let change = json!({"order": id, "line": line, "quantity": quantity});
                self.change_quantity(ADJUST, change, &variant, quantity).await
            }
            DraftChange::SetCustomer => self.set_customer().await,
            DraftChange::SetShippingAddress(address) => {
                self.set_address(SET_SHIPPING_ADDRESS, &address).await
            }
            DraftChange::SetBillingAddress(address) => {
                self.set_address(SET_BILLING_ADDRESS, &address).await
            }
            DraftChange::SetShippingMethod => self.set_shipping_method().await,
            DraftChange::Lock => self.lock().await,
        }
    }

    async fn change(&self, document: &str, variables: Value) -> Result<(), RemoteError> {
        let made: MutationResult<ChangeResult> = self.api.mutate(document, variables).await?;
        match made.result.error() {
            Some(said) => Err(RemoteError::Refused(said.to_string())),
            None => Ok(()),
        }
    }

    async fn change_quantity(
        &self,
        document: &str,
        variables: Value,
        variant: &ShopVariant,
        asked: u32,
    ) -> Result<(), RemoteError> {
        let made: MutationResult<ChangeResult> = self.api.mutate(document, variables).await?;
        let Some(said) = made.result.error() else { return Ok(()) };
        let ShopVariant { name, sku, .. } = variant;
        Err(match made.result.quantity_available {
            // A buyer reads this.
            Some(available) => RemoteError::Refused(format!(
                "There are not enough of {name} (SKU {sku}): {asked} were asked for, and \
                 {available} can be had."
            )),
            None => said.refused(&format!("{asked} of {name} (SKU {sku}) cannot be ordered.")),
        })
    }

    /// A registered customer is named by id, and so is a guest of whom only the address is known.
    /// Other guests are written down, or changed, as they say.
    async fn set_customer(&self) -> Result<(), RemoteError> {
        let (id, customer) = (&self.found.id, &self.order.customer);
        let asked = json!({"email": customer.email.key()});
        let found: Customers = self.api.query(FIND_CUSTOMER, asked).await?;
        let found = found.customers.items.into_iter().next();
        let who = match (found, &customer.name) {
            (Some(it), None) => json!({"order": id, "customer": it.id}),
            (Some(it), Some(_)) if it.user.is_some() => json!({"order": id, "customer": it.id}),
            (_, name) => {
                let name = name.as_ref().map(|it| it.as_str()).unwrap_or_default();
                let (first_name, last_name) = name.rsplit_once(' ').unwrap_or((name, ""));
                let input = Guest {
                    email_address: customer.email.as_str(),
                    first_name,
                    last_name,
                    phone_number: customer.phone.as_ref().map(|it| it.as_str()),
                };
                json!({"order": id, "input": input})
            }
        };
        let made: MutationResult<ChangeResult> = self.api.mutate(SET_CUSTOMER, who).await?;
        match made.result.error() {
            Some(said) if said.code == "EMAIL_ADDRESS_CONFLICT_ERROR" => Err(said.refused(
                "The customer has registered in another channel of the shop only. The shop must \
                 assign the customer to this channel first.",
            )),
            Some(said) => Err(RemoteError::Refused(said.to_string())),
            None => Ok(()),
        }
    }

    async fn set_address(&self, document: &str, address: &Address) -> Result<(), RemoteError> {
        let variables = json!({"order": self.found.id, "address": address});
        match self.api.mutate::<MutationResult<Created>>(document, variables).await {
            Ok(_) => Ok(()),
            Err(RequestFailure::Refused(said)) if said.code == "USER_INPUT_ERROR" => {
                Err(said.refused("The shop does not know this address."))
            }
            Err(e) => Err(e.into()),
        }
    }

    async fn set_shipping_method(&self) -> Result<(), RemoteError> {
        let id = &self.found.id;
        let offered: Quotes = self.api.query(SHIPPING_METHODS, json!({"order": id})).await?;
        let offered = offered.eligible_shipping_methods_for_draft_order;
        let method = match &self.order.shipping_method {
            Some(code) => match offered.iter().find(|it| it.code == *code) {
                Some(method) => method,
                None => {
                    let codes: Vec<_> = offered.iter().map(|it| it.code.as_str()).collect();
                    return Err(RemoteError::Refused(format!(
                        "The shop does not offer the shipping method {code} for this order. It \
                         offers: {}.",
                        if codes.is_empty() { "none".into() } else { codes.join(", ") }
                    )));
                }
            },
            None => match offered.iter().min_by_key(|it| (it.price_with_tax, &it.code)) {
                Some(method) => method,
                // A shop may allow orders that are not shipped.
                None => return self.lock().await,
            },
        };
        self.change(SET_SHIPPING_METHOD, json!({"order": id, "method": method.id})).await
    }

    async fn lock(&self) -> Result<(), RemoteError> {
        // What could not be paid is not locked.
        built(self.found, self.precision).map_err(RemoteError::Refused)?;
        let variables = json!({"order": self.found.id, "state": "ArrangingPayment"});
        let made: MutationResult<Option<ChangeResult>> =
            self.api.mutate(TRANSITION, variables).await?;
        match made.result.and_then(|it| it.error()) {
            Some(said) if self.found.shipping_lines.is_empty() => {
                Err(said.refused("The shop offers no shipping method for this order."))
            }
            Some(said) if said.message.contains("stock") => {
                Err(RemoteError::Refused("Something in the order is no longer in stock.".into()))
            }
            Some(said) => Err(said.refused("The shop does not accept the order.")),
            None => Ok(()),
        }
    }

    /// Deletes the draft. Returns why, or that the deletion must be tried again: the step then finds
    /// the same reason again.
    async fn give_up(&self, why: String) -> RemoteError {
        let variables = json!({"order": self.found.id});
        let deleted =
            match self.api.mutate::<MutationResult<Deleted>>(DELETE_DRAFT, variables).await {
                Ok(made) if made.result.result == "DELETED" => return RemoteError::Refused(why),
                Ok(made) => made.result.message.unwrap_or_default(),
                Err(e) => match e.into() {
                    RemoteError::Refused(why) => why,
                    unanswered => return unanswered,
                },
            };
        let code = &self.found.code;
        RemoteError::Refused(format!("{why} The draft {code} was not deleted: {deleted}"))
    }
}
