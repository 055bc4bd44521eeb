//! The keys that open stores.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A private key as PEM text. Its `Debug` output is masked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pem(pub String);

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

/// What opens an account at a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKey {
    /// For Google Play and Firebase.
    Google(ServiceAccount),
    /// For the App Store and TestFlight.
    Apple(AppStoreConnectKey),
}

/// A key of a Google service account. The address for tokens in the key file is not used: a file
/// that somebody uploads must not say where this service connects to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccount {
    /// Such as `publisher@project.iam.gserviceaccount.com`.
    pub client_email: String,
    /// Google finds the public half by it.
    pub private_key_id: String,
    /// RSA, PKCS#8.
    pub private_key: Pem,
}

/// A key of the App Store Connect API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStoreConnectKey {
    /// Ten capital letters and digits.
    pub key_id: String,
    /// The UUID of the team's issuer. `None`: an individual key.
    pub issuer_id: Option<String>,
    /// EC P-256, PKCS#8.
    pub private_key: Pem,
}
