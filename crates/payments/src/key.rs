//! Keys of accounts at payment providers.

use contract::text::MASK;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;

/// The key to an account at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKey {
    /// Asks Paystack, and checks its notices.
    Paystack(PaystackKey),
    /// Asks Stripe, and checks its notices.
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
    /// `sk_test_…`, `sk_live_…`, or a restricted key `rk_test_…` or `rk_live_…`.
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

/// Secret keys are shorter than this, in bytes.
const LONGEST: usize = 500;
/// So many earlier keys or webhook secrets can be given.
const MOST: usize = 10;

impl PaystackKey {
    /// Reads what somebody uploads: the secret key on one line, or the JSON of [`PaystackKey`]. The
    /// error is a sentence that says what to do, without the key.
    pub fn read(file: &[u8]) -> Result<PaystackKey, String> {
        let key = read(file, |secret_key| PaystackKey { secret_key, previous_keys: Vec::new() })?;
        let keys = || std::iter::once(&key.secret_key).chain(&key.previous_keys);
        check(keys(), &["sk_test_", "sk_live_"], |_| {
            "must be a secret key of Paystack, which begins with sk_test_ or sk_live_. It is in the \
             Paystack dashboard under Settings, API Keys & Webhooks."
        })?;
        if keys().any(|other| is_live(other) != key.is_live()) {
            return Err(
                "`previousKeys` must be live keys if the secret key is one, and test keys if \
                        it is one."
                    .into(),
            );
        }
        Ok(key)
    }

    /// Whether money moves.
    pub fn is_live(&self) -> bool {
        is_live(&self.secret_key)
    }

    /// The last four characters of the secret key, for people who compare it.
    pub fn last4(&self) -> String {
        last4(&self.secret_key)
    }
}

impl StripeKey {
    /// Reads what somebody uploads: the secret key on one line, or the JSON of [`StripeKey`]. The
    /// error is a sentence that says what to do, without the key.
    ///
    /// A key without webhook secrets is accepted: it takes payments, and its notices are refused.
    pub fn read(file: &[u8]) -> Result<StripeKey, String> {
        let key = read(file, |secret_key| StripeKey { secret_key, webhook_secrets: Vec::new() })?;
        check(
            std::iter::once(&key.secret_key),
            &["sk_test_", "sk_live_", "rk_test_", "rk_live_"],
            |text| match text.starts_with("pk_") {
                true => {
                    "is a publishable key. Upload the secret key, which begins with sk_, or a \
                     restricted key, which begins with rk_."
                }
                false => {
                    "must be a secret key of Stripe, which begins with sk_test_ or sk_live_, or a \
                     restricted key, which begins with rk_test_ or rk_live_. It is in the Stripe \
                     dashboard under Developers, API keys."
                }
            },
        )?;
        check(key.webhook_secrets.iter(), &["whsec_"], |_| {
            "must be signing secrets of a webhook endpoint in `webhookSecrets`, which begin with \
             whsec_. They are in the Stripe dashboard under Developers, Webhooks."
        })?;
        Ok(key)
    }

    /// Whether money moves.
    pub fn is_live(&self) -> bool {
        is_live(&self.secret_key)
    }

    /// The last four characters of the secret key, for people who compare it.
    pub fn last4(&self) -> String {
        last4(&self.secret_key)
    }
}

fn read<T: DeserializeOwned>(file: &[u8], of: fn(SecretText) -> T) -> Result<T, String> {
    let text = std::str::from_utf8(file).map_err(|_| "The file must be text.".to_owned())?.trim();
    match text.starts_with('{') {
        // The message of the parser could quote the key.
        true => serde_json::from_str(text).map_err(|e| {
            format!(
                "The JSON cannot be read at line {}, column {}: it must have the key as \
                 `secretKey`, and no other fields than the documentation names.",
                e.line(),
                e.column()
            )
        }),
        false => Ok(of(SecretText(text.to_owned()))),
    }
}

/// Checks that there are not too many keys, and that each has one of these beginnings. `wrong` says
/// what is wrong with a text that has none.
fn check<'a>(
    keys: impl Iterator<Item = &'a SecretText>,
    beginnings: &[&str],
    wrong: fn(&str) -> &'static str,
) -> Result<(), String> {
    for (at, SecretText(text)) in keys.enumerate() {
        let rest = beginnings.iter().find_map(|beginning| text.strip_prefix(beginning));
        let good =
            |rest: &str| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-+/=".contains(&b));
        if !rest.is_some_and(|rest| rest.len() >= 8 && good(rest)) || text.len() > LONGEST {
            return Err(format!("The file {}", wrong(text)));
        }
        if at > MOST {
            return Err(format!("The file may have at most {MOST} keys beside the secret key."));
        }
    }
    Ok(())
}

fn is_live(SecretText(key): &SecretText) -> bool {
    key.starts_with("sk_live_") || key.starts_with("rk_live_")
}

fn last4(SecretText(key): &SecretText) -> String {
    let mut last: Vec<_> = key.chars().rev().take(4).collect();
    last.reverse();
    last.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_a_line_or_from_json() {
        let secret = |text: &str| SecretText(text.into());
        let bare = PaystackKey::read(b" sk_test_0123456789abcdef\n").unwrap();
        assert_eq!(bare.secret_key, secret("sk_test_0123456789abcdef"));
        assert_eq!((bare.is_live(), bare.last4().as_str()), (false, "cdef"));
        let json = br#"{"secretKey": "sk_live_0123456789abcdef", "previousKeys": ["sk_live_fedcba9876543210"]}"#;
        let key = PaystackKey::read(json).unwrap();
        assert_eq!(key.previous_keys, [secret("sk_live_fedcba9876543210")]);
        assert!(key.is_live());
        assert_eq!(serde_json::from_slice::<PaystackKey>(json).unwrap(), key);

        let restricted = StripeKey::read(b"rk_live_0123456789abcdef").unwrap();
        assert!(restricted.is_live() && restricted.webhook_secrets.is_empty());
        let json = br#"{"secretKey": "sk_test_0123456789abcdef", "webhookSecrets": ["whsec_0123456789abcdef"]}"#;
        assert_eq!(
            StripeKey::read(json).unwrap().webhook_secrets,
            [secret("whsec_0123456789abcdef")]
        );
        assert!(!format!("{restricted:?} {key:?}").contains("0123456789"));
    }

    #[test]
    fn what_is_no_key_is_refused_without_quoting_it() {
        let paystack = |file: &str| PaystackKey::read(file.as_bytes()).unwrap_err();
        let stripe = |file: &str| StripeKey::read(file.as_bytes()).unwrap_err();
        let said = [
            (paystack(""), "sk_test_ or sk_live_"),
            (paystack("pk_test_0123456789abcdef"), "sk_test_ or sk_live_"),
            (paystack("sk_test_"), "sk_test_ or sk_live_"),
            (
                paystack("sk_test_0123456789abcdef\nsk_test_0123456789abcdef"),
                "sk_test_ or sk_live_",
            ),
            (
                paystack(
                    r#"{"secretKey": "sk_live_0123456789abcdef", "previousKeys": ["sk_test_0123456789abcdef"]}"#,
                ),
                "previousKeys",
            ),
            (
                paystack(r#"{"secretKey": "sk_live_0123456789abcdef", "webhookSecrets": []}"#),
                "line 1",
            ),
            (stripe("pk_live_0123456789abcdef"), "publishable"),
            (
                stripe(
                    r#"{"secretKey": "sk_live_0123456789abcdef", "webhookSecrets": ["sk_live_0123456789abcdef"]}"#,
                ),
                "whsec_",
            ),
            (StripeKey::read(b"\xff").unwrap_err(), "text"),
        ];
        for (sentence, part) in said {
            assert!(sentence.contains(part), "{sentence}");
            assert!(!sentence.contains("0123456789"), "{sentence}");
        }
    }
}
