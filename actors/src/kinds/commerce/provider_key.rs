//! The key of an app to a payment provider.

use crate::{
    kinds::{delivery::credentials, world::World},
    ports::credentials::Secret,
};
use contract::{
    AppId, Fault,
    checkouts::PaymentProvider,
    credentials::{Credential, CredentialKind},
};
use payments::ProviderKey;

/// The newest key of an app to a provider, with its credential. `None`: the app has none.
pub fn provider_key(
    world: &World,
    app: AppId,
    provider: PaymentProvider,
) -> Result<Option<(ProviderKey, Credential)>, Fault> {
    let kind = match provider {
        PaymentProvider::Paystack => CredentialKind::Paystack,
        PaymentProvider::Stripe => CredentialKind::Stripe,
    };
    let Some(found) = credentials::newest(world, app, kind, None)? else { return Ok(None) };
    Ok(match found.secret {
        Secret::Paystack(key) => Some((ProviderKey::Paystack(key), found.credential)),
        Secret::Stripe(key) => Some((ProviderKey::Stripe(key), found.credential)),
        _ => None,
    })
}
