//! Orders in shops, through the admin API of a Vendure server.
//!
//! An order is built one step at a time. The caller keeps the [`OrderProgress`] between the steps, and a
//! step may be repeated after a crash: what must not happen twice is looked up in the shop before
//! it is done.

#![warn(missing_docs)]

#[cfg(feature = "clients")]
mod vendure;

#[cfg(feature = "clients")]
pub use vendure::Vendure;

use async_trait::async_trait;
use contract::{
    checkouts::{Customer, Reference, ShippingAddress},
    money::Money,
    text::{AccessToken, WebUrl},
};
pub use remote::RemoteError;
use serde::{Deserialize, Serialize};

/// What this service asks of a shop, through its admin API.
#[async_trait]
pub trait Shop: Send + Sync {
    /// Takes an order one step closer to being payable. When it is, its contents no longer change.
    ///
    /// A step that a lack of stock or another rule of the shop stops is refused, and leaves nothing
    /// behind that holds stock.
    async fn build(
        &self,
        channel: &Channel,
        order: &PurchaseOrder,
        progress: &OrderProgress,
    ) -> Result<(OrderProgress, Option<Built>), RemoteError>;

    /// Records the payment of an order. Refused if the order is to be paid with another sum. An order
    /// with a payment of this reference is settled already, and is not changed.
    ///
    /// Only one caller may settle an order at a time, and after [`RemoteError::Unclear`] a pause must
    /// pass before the next attempt: a shop that still works on the first one records a second one.
    async fn settle(
        &self,
        channel: &Channel,
        order: &str,
        reference: Reference,
        paid: &Money,
    ) -> Result<(), RemoteError>;

    /// Cancels an order that nobody paid. An order that is cancelled or gone already is fine.
    async fn cancel(
        &self,
        channel: &Channel,
        order: &str,
        reference: Reference,
    ) -> Result<(), RemoteError>;

    /// Checks that the token opens the channel with every permission that checkouts need. Changes
    /// nothing. Returns what was found, as one sentence that names the channel and its currency.
    async fn check_access(&self, channel: &Channel) -> Result<String, RemoteError>;
}

/// A channel of a shop, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The address of the admin API.
    pub admin_api_url: WebUrl,
    /// A bearer token of an administrator, or an API key.
    pub admin_token: AccessToken,
    /// The token that names the channel.
    pub channel_token: String,
    /// Whether the operator allows the address although it is on the internal network: the service
    /// runs this shop itself.
    pub is_own: bool,
}

/// What somebody buys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PurchaseOrder {
    /// The reference of the payment.
    pub reference: Reference,
    /// What is bought, at most 100 lines.
    pub lines: Vec<Line>,
    /// Who buys.
    pub customer: Customer,
    /// Where it is sent.
    pub shipping_address: Option<ShippingAddress>,
    /// The code of the shipping method. `None`: the cheapest one that the shop offers.
    pub shipping_method: Option<String>,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Which variant of a product.
    pub variant: Variant,
    /// How many.
    pub quantity: u32,
}

/// A variant of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Variant {
    /// The shop's id of it.
    Id(String),
    /// Its stock keeping unit.
    Sku(String),
}

/// How far the building of an order is. Kept by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderProgress {
    /// The shop's id of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// An order that can be paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// The shop's id of the order.
    pub id: String,
    /// The code that buyers and shopkeepers see.
    pub code: String,
    /// What is to be paid, with taxes and shipping.
    pub total: Money,
    /// What is bought, for the page of the payment provider, with the price of each.
    pub summary: Vec<BuiltLine>,
}

/// A line of an order as the shop prices it. Shipping and discounts are lines too, or are left out if
/// they are nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltLine {
    /// What the buyer reads.
    pub name: String,
    /// How many.
    pub quantity: u32,
    /// The price of all of them with taxes, in the minor unit. Negative for a discount.
    pub total: i64,
}
