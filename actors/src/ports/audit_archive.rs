//! The archive of the audit log.

use super::PortError;
use async_trait::async_trait;

/// Where the entries of the audit log go before they are removed from the store.
#[async_trait]
pub trait AuditArchive: Send + Sync {
    /// Appends lines, each with its line feed, to the file of a day such as `2026-01-31`. They are on the disk
    /// when this returns.
    async fn append(&self, day: &str, lines: Vec<u8>) -> Result<(), PortError>;
}
