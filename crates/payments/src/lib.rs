//! Payments of buyers through a payment provider.
//!
//! What a provider says about a payment is looked up, never believed from a notice: a notice of a
//! provider only says what to look at. So a notice may come twice, late, or never.

#![warn(missing_docs)]

mod amounts;
mod key;
mod notice;
mod payment;
#[cfg(feature = "clients")]
pub mod paystack;
#[cfg(feature = "clients")]
pub mod stripe;
mod subscription;

pub use amounts::{NotCharged, check_amount, check_currency};
pub use contract::checkouts::{DisputeState, SubscriptionStatus};
pub use key::{PaystackKey, ProviderKey, SecretText, StripeKey};
pub use notice::{About, Notice, NoticeRefused, Signature, read_notice};
pub use payment::{Line, Payment, PaymentOrder, PaymentPage, PaymentStatus};
pub use remote::RemoteError;
pub use subscription::{Subscription, SubscriptionPlan};

use async_trait::async_trait;
use contract::{
    checkouts::Reference,
    text::{Currency, PlanCode},
};

/// A payment provider.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Opens the page on which the buyer pays. Repeated with exactly the same order, it opens the
    /// same page, or finds that there is one already ([`PaymentPage::url`] is then `None`): nobody is ever
    /// asked to pay one reference twice. After [`RemoteError::Unclear`], repeat it.
    async fn open(
        &self,
        key: &ProviderKey,
        order: &PaymentOrder,
    ) -> Result<PaymentPage, RemoteError>;

    /// What the provider knows of a payment. `None`: it knows nothing of the reference. `session`
    /// is what [`PaymentPage::session`] said, if that is known.
    async fn payment(
        &self,
        key: &ProviderKey,
        reference: Reference,
        session: Option<&str>,
    ) -> Result<Option<Payment>, RemoteError>;

    /// The reference of a payment of ours, by the provider's id of the payment, as
    /// [`About::PaymentId`] has it. `None`: the payment is none of ours.
    async fn reference_of(
        &self,
        key: &ProviderKey,
        payment_id: &str,
    ) -> Result<Option<Reference>, RemoteError>;

    /// Closes the page, so that nobody can pay any more. Returns whether that is certain: a provider
    /// that cannot close a page says `false`.
    async fn close(&self, key: &ProviderKey, session: &str) -> Result<bool, RemoteError>;

    /// A plan. Refused if the provider does not know it.
    async fn plan(
        &self,
        key: &ProviderKey,
        code: &PlanCode,
    ) -> Result<SubscriptionPlan, RemoteError>;

    /// A subscription by the provider's id of it. `None`: the provider does not know it.
    async fn subscription(
        &self,
        key: &ProviderKey,
        id: &str,
    ) -> Result<Option<Subscription>, RemoteError>;

    /// The subscription that a payment began. `None`: not yet.
    async fn subscription_of(
        &self,
        key: &ProviderKey,
        payment: &Payment,
    ) -> Result<Option<Subscription>, RemoteError>;

    /// The currencies that the account has. Exactly one is the currency of its payments; of several, the
    /// provider does not say which one that is.
    async fn currencies(&self, key: &ProviderKey) -> Result<Vec<Currency>, RemoteError>;

    /// Checks that the key is accepted. Changes nothing. Returns what was found, as one sentence,
    /// such as that it is a key for tests.
    async fn check_access(&self, key: &ProviderKey) -> Result<String, RemoteError>;
}
