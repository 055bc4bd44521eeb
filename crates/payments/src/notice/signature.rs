//! Signatures of notices.

use super::{NoticeRefused, Signature};
use crate::{PaystackKey, SecretText, StripeKey};
use contract::Timestamp;
use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};

/// How far the time of a signature of Stripe may be from now, in seconds. It is what Stripe's own
/// libraries allow.
const TOLERANCE: u64 = 300;
/// More signatures in one header are not looked at.
const MOST_SIGNATURES: usize = 20;

fn refused(why: &str) -> NoticeRefused {
    NoticeRefused::Signature(why.to_owned())
}

/// Source: "Verifying the header" in "Webhooks" of Paystack's documentation. The signature has no
/// time, so an old one stays valid.
pub(super) fn check_paystack(
    key: &PaystackKey,
    signature: &Signature,
    body: &[u8],
) -> Result<(), NoticeRefused> {
    if signature.0.is_empty() {
        return Err(refused(
            "The notice has no signature: the header x-paystack-signature is missing.",
        ));
    }
    let stated = HEXLOWER_PERMISSIVE.decode(signature.0.trim().as_bytes());
    let stated = stated.map_err(|_| {
        refused("The signature of the notice cannot be read: it must be hexadecimal digits.")
    })?;
    let mut keys = std::iter::once(&key.secret_key).chain(&key.previous_keys);
    let signed_with = |SecretText(key): &SecretText| {
        Hmac::<Sha512>::new_from_slice(key.as_bytes())
            .is_ok_and(|mac| mac.chain_update(body).verify_slice(&stated).is_ok())
    };
    match keys.any(signed_with) {
        true => Ok(()),
        false => Err(refused(
            "The signature of the notice fits none of the keys of the credential. If the secret key \
             was replaced at Paystack, replace the credential too.",
        )),
    }
}

/// Source: "Verify webhook signatures manually" in "Receive Stripe events in your webhook endpoint".
pub(super) fn check_stripe(
    key: &StripeKey,
    signature: &Signature,
    body: &[u8],
    now: Timestamp,
) -> Result<(), NoticeRefused> {
    if key.webhook_secrets.is_empty() {
        return Err(refused(
            "The credential has no signing secret, so no notice of Stripe can be believed. Upload the \
             credential again as JSON, with the signing secret of the webhook endpoint in \
             `webhookSecrets`.",
        ));
    }
    if signature.0.is_empty() {
        return Err(refused(
            "The notice has no signature: the header Stripe-Signature is missing.",
        ));
    }
    let unreadable =
        || refused("The signature of the notice cannot be read: it must have the parts t and v1.");
    let parts = || signature.0.split(',').filter_map(|part| part.trim().split_once('='));
    let (_, time) = parts().find(|(scheme, _)| *scheme == "t").ok_or_else(unreadable)?;
    let seconds: i64 = time.parse().map_err(|_| unreadable())?;
    let stated: Vec<_> = parts()
        .filter(|(scheme, _)| *scheme == "v1")
        .take(MOST_SIGNATURES)
        .filter_map(|(_, digits)| HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok())
        .collect();
    if stated.is_empty() {
        return Err(unreadable());
    }
    let is_signed = key.webhook_secrets.iter().any(|SecretText(secret)| {
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).is_ok_and(|mac| {
            // The digits as they came: a time that is written differently is signed differently.
            let mac = mac.chain_update(time).chain_update(b".").chain_update(body);
            stated.iter().any(|stated| mac.clone().verify_slice(stated).is_ok())
        })
    });
    if !is_signed {
        return Err(refused(
            "The signature of the notice fits none of the signing secrets of the credential. If the \
             secret was rolled at Stripe, upload the credential again with the new secret.",
        ));
    }
    match now.as_seconds().abs_diff(seconds) <= TOLERANCE {
        true => Ok(()),
        false => Err(refused(
            "The signature of the notice was made more than five minutes ago, or the clock of this \
             machine is wrong.",
        )),
    }
}
