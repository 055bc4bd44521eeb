//! Hashes of passwords.

use super::PortError;
use crate::runtime::turns::Tenant;
use async_trait::async_trait;
use contract::{Password, PasswordAttempt};

/// Hashes passwords, off the request threads. The work waits for turns, which tenants share.
#[async_trait]
pub trait Passwords: Send + Sync {
    async fn hash(&self, tenant: Tenant, password: Password) -> Result<String, PortError>;
    /// Whether the password matches the hash. Without a hash, takes as long and returns false.
    async fn verify(
        &self,
        tenant: Tenant,
        password: PasswordAttempt,
        hash: Option<String>,
    ) -> Result<bool, PortError>;
}
