//! Keys of accounts at payment providers.

use contract::text::MASK;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The key to an account at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// For Paystack.
    Paystack(PaystackKey),
    /// For Stripe.
    Stripe(StripeKey),
}

/// The keys of an account at Paystack. It signs notices with the secret key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaystackKey {
    /// `sk_test_…` or `sk_live_…`.
    pub secret_key: SecretText,
    /// Keys whose signatures are still accepted, after the secret key was replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_keys: Vec<SecretText>,
}

/// The keys of an account at Stripe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StripeKey {
    /// `sk_test_…`, `sk_live_…`, or a restricted key `rk_…`.
    pub secret_key: SecretText,
    /// The signing secrets `whsec_…` of the webhook endpoint. While a secret is rolled, both are
    /// here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhook_secrets: Vec<SecretText>,
}

/// A secret. Its `Debug` output is masked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}
