//! The files of credentials.

use crate::runtime::turns::{NoTurn, Tenant};
use app_stores::{AppStoreConnectKey, ServiceAccount};
use async_trait::async_trait;
use contract::{
    Timestamp,
    credentials::{CredentialFacts, CredentialKind},
    text::{AccessToken, PasswordAttempt},
};
use payments::{PaystackKey, StripeKey};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Opens the files of credentials, off the threads of callers: some formats derive keys from
/// passwords slowly on purpose.
#[async_trait]
pub trait CredentialFiles: Send + Sync {
    /// Waits for a turn of the tenant, then opens a file and judges it.
    async fn open(
        &self,
        tenant: Tenant,
        upload: CredentialUpload,
        now: Timestamp,
    ) -> Result<Result<CredentialContents, Refused>, NoTurn>;
}

/// A file as somebody uploads it.
pub struct CredentialUpload {
    pub kind: CredentialKind,
    pub data: Vec<u8>,
    pub password: Option<PasswordAttempt>,
    pub profile: Option<Vec<u8>>,
    pub alias: Option<String>,
    pub key_password: Option<PasswordAttempt>,
    pub key_id: Option<String>,
    pub issuer_id: Option<String>,
}

/// What an uploaded file holds.
pub struct CredentialContents {
    pub facts: CredentialFacts,
    /// When the first of its parts expires.
    pub expires_at: Option<Timestamp>,
    /// One sentence each.
    pub warnings: Vec<String>,
    pub secret: Secret,
}

/// Why a file is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// The parameter that is wrong.
    pub field: &'static str,
    /// The reason, and what to do.
    pub why: String,
}

/// What is secret in a credential. It is stored sealed, and its `Debug` output is masked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Secret {
    /// The files in base64.
    IosSigning {
        p12: String,
        password: String,
        profile: String,
    },
    /// The file in base64.
    AndroidKeystore {
        keystore: String,
        password: String,
        alias: String,
        key_password: Option<String>,
    },
    AppStoreConnect(AppStoreConnectKey),
    Google(ServiceAccount),
    Token(AccessToken),
    Paystack(PaystackKey),
    Stripe(StripeKey),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}
