//! Plans, and subscriptions to them.

use contract::{Email, Timestamp, checkouts::SubscriptionStatus, money::Money, text::PlanCode};
use serde::{Deserialize, Serialize};

/// A plan that buyers subscribe to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionPlan {
    /// The provider's code of the plan: `PLN_…` at Paystack, the id of a recurring price at Stripe.
    pub code: PlanCode,
    /// What the buyer reads.
    pub name: String,
    /// The price of one period.
    pub price: Money,
}

/// What a provider knows of a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The provider's id of it.
    pub id: String,
    /// What the buyer subscribed to.
    pub plan: PlanCode,
    /// Who subscribed.
    pub email: Email,
    /// Where it stands.
    pub status: SubscriptionStatus,
    /// Until when it is paid. `None` if the provider does not say.
    pub period_end: Option<Timestamp>,
    /// The provider's own word for the status.
    pub said: String,
    /// Why the last renewal failed, in the provider's words. `None` if it did not.
    pub renewal_failure: Option<String>,
}
