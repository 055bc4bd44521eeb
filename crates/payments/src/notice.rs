//! Notices: what providers post to the webhook of an app.

use contract::checkouts::Reference;

/// The signature that came with a notice: the value of `x-paystack-signature` or
/// `Stripe-Signature`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature(pub String);

/// A notice that the provider signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The provider's name of the event, such as `charge.success`.
    pub event: String,
    /// What to look at.
    pub about: About,
}

/// What a notice is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A payment of ours, by its reference.
    Payment(Reference),
    /// A payment, by the provider's id of it (a payment intent of Stripe): for refunds and disputes,
    /// which do not carry the reference.
    PaymentId(String),
    /// A subscription, by the provider's id of it, with the provider's id of the buyer if it is known.
    Subscription(String),
    /// Nothing that concerns us.
    Nothing,
}

/// Why a notice is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoticeRefused {
    /// The signature is missing, wrong or too old.
    #[error("{0}")]
    Signature(String),
    /// The body cannot be read.
    #[error("the body is not a notice of the provider: {0}")]
    Unreadable(String),
}
