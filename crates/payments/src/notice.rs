//! Notices: what providers post to the webhook of an app.

mod events;
mod signature;

use crate::ProviderKey;
use contract::{Timestamp, checkouts::Reference};

/// The signature that came with a notice: the value of `x-paystack-signature` or
/// `Stripe-Signature`. Empty if there was none.
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
    /// A payment, by the provider's id of it (a payment intent of Stripe, the number of a
    /// transaction of Paystack): for refunds and disputes, which may not carry the reference.
    /// [`crate::Provider::reference_of`] finds it.
    PaymentId(String),
    /// A subscription, by the provider's id of it.
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

/// Reads a notice: checks the signature over the exact bytes of the body, then says what the notice
/// is about.
///
/// A notice is only a hint of what to look at: nothing of it is believed but the name of the payment
/// or subscription. A repeated notice is accepted: it makes somebody look once more. How large a
/// body may be is for the caller to say.
pub fn read_notice(
    key: &ProviderKey,
    signature: &Signature,
    body: &[u8],
    now: Timestamp,
) -> Result<Notice, NoticeRefused> {
    match key {
        ProviderKey::Paystack(key) => {
            signature::check_paystack(key, signature, body)?;
            events::paystack(body)
        }
        ProviderKey::Stripe(key) => {
            signature::check_stripe(key, signature, body, now)?;
            events::stripe(body)
        }
    }
}
