//! The authority that issues the certificates of this server.

use async_trait::async_trait;
use contract::{Timestamp, certificates::HostName};

/// Issues certificates for host names that lead to this server (ACME, RFC 8555).
#[async_trait]
pub trait CertificateAuthority: Send + Sync {
    /// Which authority it is. Accounts and orders of one are nothing to another.
    fn address(&self) -> &str;

    /// Whether it issues certificates for all names below a domain.
    fn issues_wildcards(&self) -> bool;

    /// Opens an account, and returns its credentials, which are secret.
    async fn register(&self) -> Result<String, NotIssued>;

    /// Orders a certificate, and makes its key. Nothing is issued before [`Self::complete`].
    async fn order(&self, credentials: &str, name: &HostName) -> Result<Order, NotIssued>;

    /// Proves that the name leads to this server, and fetches the certificate. An order that was interrupted
    /// goes on; one that is complete returns its certificate again. `failures` says how many attempts for
    /// this name have failed: another one may prove it in another way.
    async fn complete(
        &self,
        credentials: &str,
        name: &HostName,
        order: &Order,
        failures: u32,
    ) -> Result<Issued, NotIssued>;
}

/// An order of a certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Order {
    /// Where the authority has it.
    pub url: String,
    /// The private key of the certificate (PKCS #8, PEM).
    pub key: String,
}

/// A certificate that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate and those that sign it, in the order of TLS (PEM).
    pub chain: String,
    pub valid_from: Timestamp,
    pub expires_at: Timestamp,
}

/// Why no certificate was issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotIssued {
    /// The authority does not answer, or cannot work now. The same order may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// Another attempt needs another order.
    #[error("{0}")]
    Refused(String),
    /// There were too many orders or failures. Another attempt must wait for an hour or longer.
    #[error("{0}")]
    TooMany(String),
    /// The authority does not accept the account any more.
    #[error("{0}")]
    NoAccount(String),
}
