//! Payments.

use contract::{
    Timestamp,
    checkouts::{Customer, DisputeState, Reference},
    money::{Amount, Money},
    text::{PlanCode, WebUrl},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What somebody is to pay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentOrder {
    /// Unique at the provider.
    pub reference: Reference,
    /// The whole sum, of the first period if a plan is paid.
    pub total: Money,
    /// What is paid for. The sum of the lines is the total. One line if a plan is paid.
    pub lines: Vec<Line>,
    /// Who pays.
    pub customer: Customer,
    /// The plan to which the buyer subscribes.
    pub plan: Option<PlanCode>,
    /// Where the provider sends the buyer afterwards. It gets the query parameter `reference`.
    pub return_to: WebUrl,
    /// Given to the provider as they are.
    pub metadata: BTreeMap<String, String>,
    /// When the page closes, if the provider closes pages. Stripe takes from 30 minutes to 24 hours
    /// after the page was opened.
    pub expires_at: Timestamp,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// What the buyer reads.
    pub name: String,
    /// The price of one.
    pub unit: Amount,
    /// How many.
    pub quantity: u32,
}

/// The page on which a buyer pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentPage {
    /// The provider's id of the page, by which it finds the payment.
    pub session: Option<String>,
    /// The address of the page. `None`: the page is closed or paid, or the provider told the address
    /// in an answer that was lost. If nobody was given the address before, and the payment is not
    /// paid, nobody can pay: a page for another reference can be opened instead.
    pub url: Option<WebUrl>,
    /// Opens the page inside of an app, if the provider can do that.
    pub access_code: Option<String>,
    /// When the page closes by itself.
    pub expires_at: Option<Timestamp>,
}

/// What a provider knows of a payment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// The reference that the provider has for it.
    pub reference: Option<String>,
    /// Where it stands.
    pub status: PaymentStatus,
    /// What was asked for and paid, without what the provider adds for itself.
    pub amount: Option<Money>,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
    /// The provider's id of the payment, for people who look it up there.
    pub id: Option<String>,
    /// The provider's id of the buyer.
    pub customer: Option<String>,
    /// The plan that it pays.
    pub plan: Option<PlanCode>,
    /// The provider's id of the subscription that it began, if the provider says so.
    pub subscription: Option<String>,
    /// How much was given back, in the minor unit.
    pub refunded: u64,
    /// The dispute about it.
    pub dispute: Option<DisputeState>,
}

/// Where a payment stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PaymentStatus {
    /// The buyer has not paid yet, or the provider has not decided.
    Pending,
    /// The buyer has paid. A refund or a dispute is said beside it.
    Paid,
    /// The attempt failed, for this reason in the provider's words. The buyer may try again.
    Failed(String),
    /// Nobody has paid. It is not final: Paystack says so of each page from the moment when it is
    /// opened until it is paid, and lets buyers come back.
    Abandoned,
    /// The page is closed, and was not paid. That is certain.
    Expired,
}
