//! How checkouts, payments, subscriptions, disputes and channels of shops stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a checkout stands, from its creation to the settled payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckoutState {
    /// The price is looked up.
    Created,
    /// The order is built in the shop.
    OrderBuilding,
    /// The price is known. The page of the provider is being opened.
    Initialized,
    /// The buyer can pay.
    AwaitingPayment,
    /// The money arrived, and matches.
    Paid,
    /// The order is being marked as paid in the shop, or the subscription is looked for. This is
    /// tried until it succeeds.
    Settling,
    /// All is done.
    Settled,
    /// The checkout could not begin, or the last attempt to pay failed. Many providers let the buyer
    /// try again.
    Failed,
    /// The buyer went away without paying.
    Abandoned,
    /// The time to pay is over.
    Expired,
    /// Money arrived, but not what was to be paid. A person has to decide.
    AmountMismatch,
}

/// What a thank-you page has to know of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PaymentStatus {
    /// The buyer can still pay, or the provider has not decided.
    Pending,
    /// The money arrived.
    Paid,
    /// The payment failed, or is not what was to be paid.
    Failed,
    /// The buyer went away, or the time is over.
    Abandoned,
}

/// Where a subscription stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SubscriptionStatus {
    /// The first payment is missing, or the provider was not asked yet.
    Incomplete,
    /// It is paid, or on trial.
    Active,
    /// It is paid until the end of the period, and does not go on.
    Ending,
    /// A renewal failed, and the provider tries again.
    PastDue,
    /// It is over.
    Ended,
}

/// The dispute about a payment: the bank of the buyer asks for the money back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DisputeState {
    /// It is not decided.
    Open,
    /// The money stays.
    Won,
    /// The money went back.
    Lost,
}

/// Whether a channel of a shop opened when it was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChannelCheck {
    /// It opened.
    #[default]
    Passed,
    /// The shop did not answer. Register the channel again when it does.
    Failed,
}
