//! The identity tokens of CI jobs.

use async_trait::async_trait;
use contract::{AppId, Timestamp, text::IdentityToken, trusted_publishers::CiRun};

/// The identity tokens of CI jobs.
#[async_trait]
pub trait Identities: Send + Sync {
    /// Verifies the signature, the issuer, the times and the audience of a token. The audience is this
    /// address of the service, or that of an app there, `{audience}/apps/{appId}`.
    async fn verify(
        &self,
        token: &IdentityToken,
        audience: &str,
        now: Timestamp,
    ) -> Result<Proven, IdentityError>;
}

/// What an identity token proves.
pub struct Proven {
    pub run: CiRun,
    /// The digest of the issuer and the id of the token.
    pub unique: String,
    /// When the token is no longer accepted.
    pub expires_at: Timestamp,
    /// The app that the audience names.
    pub app: Option<AppId>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The token proves nothing, for this reason.
    #[error("{0}")]
    Invalid(String),
    /// The issuer does not answer.
    #[error("{0}")]
    Unreachable(String),
}
