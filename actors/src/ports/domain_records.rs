//! The records of domains, at their name servers.

use crate::runtime::turns::Tenant;
use async_trait::async_trait;

/// Asks name servers.
#[async_trait]
pub trait DomainRecords: Send + Sync {
    /// The texts of the TXT records of a name, within ten seconds of a turn of the tenant. The error says why they are not known, in
    /// words for people. A name without records has no texts.
    async fn texts(&self, tenant: Tenant, name: &str) -> Result<Vec<String>, String>;
}
