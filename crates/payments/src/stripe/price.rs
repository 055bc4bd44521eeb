//! Prices of Stripe, which are plans if they recur.

use super::answers::{Expandable, refused};
use crate::{RemoteError, SubscriptionPlan, amounts::Amounts};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Price {
    id: String,
    active: bool,
    currency: String,
    /// Missing where the price depends on the quantity, or has parts of a minor unit.
    unit_amount: Option<u64>,
    recurring: Option<Recurring>,
    product: Expandable<Product>,
}

#[derive(Deserialize)]
struct Recurring {
    usage_type: String,
}

#[derive(Deserialize)]
struct Product {
    #[serde(default)]
    name: Option<String>,
}

impl Price {
    pub fn plan(&self) -> Result<SubscriptionPlan, RemoteError> {
        let id = &self.id;
        let wrong = |what: &str| Err(refused(format!("The price {id} of Stripe {what}")));
        let Some(recurring) = &self.recurring else {
            return wrong("is paid once. A plan must be the id of a recurring price.");
        };
        if !self.active {
            return wrong("is archived. Use another one.");
        }
        let number = match (recurring.usage_type.as_str(), self.unit_amount) {
            ("licensed", Some(number)) => number,
            _ => return wrong("depends on use or quantity. A plan must have one fixed price."),
        };
        let Some(price) = Amounts::Stripe.money(number, &self.currency).map_err(refused)? else {
            return wrong("is free. A plan must have a price.");
        };
        let name = self.product.object().and_then(|product| product.name.clone());
        Ok(SubscriptionPlan {
            code: id.parse().map_err(refused)?,
            name: name.unwrap_or_else(|| id.clone()),
            price,
        })
    }
}
