//! The archive of the audit log.

use super::PortError;
use async_trait::async_trait;
use contract::EventId;

/// Where the entries of the audit log go before they are removed from the store.
#[async_trait]
pub trait AuditArchive: Send + Sync {
    /// Appends lines, each with its line feed, to the file of a day such as `2026-01-31`. They are on the disk
    /// when this returns. `entries` are the ids of the first and of the last one.
    async fn append(
        &self,
        day: &str,
        entries: (EventId, EventId),
        lines: Vec<u8>,
    ) -> Result<(), PortError>;
}
