//! What an order in the shop lacks to be the one that is wanted.

use super::documents::{Address, ShopOrder, ShopVariant};
use crate::{PurchaseOrder, Variant};
use serde_json::{Value, json};

/// The next change of a draft.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DraftChange {
    /// A note for the shopkeepers tells which checkout the order belongs to.
    Mark,
    /// The line is not of this order.
    Remove {
        line: String,
    },
    Add {
        variant: ShopVariant,
        quantity: u32,
    },
    Adjust {
        line: String,
        variant: ShopVariant,
        quantity: u32,
    },
    SetCustomer,
    SetShippingAddress(Address),
    SetBillingAddress(Address),
    SetShippingMethod,
    /// The contents are complete. Prices and contents no longer change after it.
    Lock,
}

/// The note on an order that belongs to a checkout.
pub(super) fn note(order: impl std::fmt::Display) -> String {
    format!("Checkout {order}")
}

/// Which of the shop's variants an order is about.
pub(super) fn filter(order: &PurchaseOrder) -> Value {
    let (mut ids, mut skus) = (Vec::new(), Vec::new());
    for line in &order.lines {
        match &line.variant {
            Variant::Id(id) => ids.push(id),
            Variant::Sku(sku) => skus.push(sku),
        }
    }
    let mut parts = Vec::new();
    if !ids.is_empty() {
        parts.push(json!({"id": {"in": ids}}));
    }
    if !skus.is_empty() {
        parts.push(json!({"sku": {"in": skus}}));
    }
    json!({"filter": {"_or": parts}})
}

/// How many of which variant are wanted. The error is a sentence for the buyer.
pub(super) fn wanted(
    order: &PurchaseOrder,
    variants: &[ShopVariant],
) -> Result<Vec<(ShopVariant, u32)>, String> {
    let mut wanted: Vec<(ShopVariant, u32)> = Vec::new();
    for line in &order.lines {
        let variant = find(&line.variant, variants)?;
        if line.quantity == 0 {
            return Err(format!("The order asks for none of {}.", variant.name));
        }
        match wanted.iter_mut().find(|(it, _)| it.id == variant.id) {
            Some((_, quantity)) => *quantity = quantity.saturating_add(line.quantity),
            None => wanted.push((variant.clone(), line.quantity)),
        }
    }
    if wanted.is_empty() {
        return Err("The order has no lines.".into());
    }
    Ok(wanted)
}

fn find<'a>(variant: &Variant, variants: &'a [ShopVariant]) -> Result<&'a ShopVariant, String> {
    let (which, found): (_, Vec<_>) = match variant {
        Variant::Id(id) => {
            (format!("variant {id}"), variants.iter().filter(|it| it.id == *id).collect())
        }
        Variant::Sku(sku) => (
            format!("product with the SKU {sku}"),
            variants.iter().filter(|it| it.sku == *sku).collect(),
        ),
    };
    let for_sale: Vec<_> = found.iter().filter(|it| it.enabled && it.product.enabled).collect();
    match (for_sale.as_slice(), found.first()) {
        ([variant], _) => Ok(variant),
        ([], None) => Err(format!("The shop has no {which} in this channel.")),
        ([], Some(variant)) => Err(format!("{} is not for sale.", variant.name)),
        _ => Err(format!("The shop has more than one {which}: order by the id of the variant.")),
    }
}

/// The next change of a draft that has its note.
pub(super) fn next(
    order: &PurchaseOrder,
    draft: &ShopOrder,
    wanted: &[(ShopVariant, u32)],
) -> DraftChange {
    for (at, line) in draft.lines.iter().enumerate() {
        let is_wanted = wanted.iter().any(|(variant, _)| variant.id == line.product_variant.id);
        let mut before = draft.lines.iter().take(at);
        let is_repeated = before.any(|it| it.product_variant.id == line.product_variant.id);
        if !is_wanted || is_repeated {
            return DraftChange::Remove { line: line.id.clone() };
        }
    }
    for (variant, quantity) in wanted {
        let (variant, quantity) = (variant.clone(), *quantity);
        match draft.lines.iter().find(|it| it.product_variant.id == variant.id) {
            None => return DraftChange::Add { variant, quantity },
            Some(line) if line.quantity != quantity => {
                return DraftChange::Adjust { line: line.id.clone(), variant, quantity };
            }
            Some(_) => {}
        }
    }
    let customer = &order.customer;
    let email = customer.email.key();
    if draft.customer.as_ref().is_none_or(|it| it.email_address.to_lowercase() != email) {
        return DraftChange::SetCustomer;
    }
    if let Some(address) = &order.shipping_address {
        let address = || Address::of(address, customer.name.as_ref(), customer.phone.as_ref());
        if draft.shipping_address != Some(address()) {
            return DraftChange::SetShippingAddress(address());
        }
        if draft.billing_address != Some(address()) {
            return DraftChange::SetBillingAddress(address());
        }
    }
    let set = draft.shipping_lines.first().map(|it| &it.shipping_method.code);
    match (set, &order.shipping_method) {
        (None, _) => DraftChange::SetShippingMethod,
        (Some(set), Some(wanted)) if set != wanted => DraftChange::SetShippingMethod,
        _ => DraftChange::Lock,
    }
}

/// Whether nobody has put anything into an order.
pub(super) fn is_empty(order: &ShopOrder) -> bool {
    order.lines.is_empty() && order.customer.is_none()
}

/// Why an order is left alone: a shop that lost its data gives the ids of orders out again.
pub(super) fn foreign(order: &ShopOrder) -> String {
    format!(
        "The order {} in the shop has no note of this checkout, so it is somebody else's. A \
         shopkeeper who knows that it is not can add the note.",
        order.code
    )
}
