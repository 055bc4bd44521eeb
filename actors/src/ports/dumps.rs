//! The bytes of backups.

use async_trait::async_trait;
use bytes::Bytes;
use contract::{BackupId, Sha256};
use futures_util::stream::BoxStream;

/// The bytes of backups, compressed and hashed. A dump becomes visible when it is kept.
#[async_trait]
pub trait Dumps: Send + Sync {
    /// Is held while a dump is written and kept. When it is dropped, what is not kept and lies on this node is removed:
    /// another node may have taken over.
    fn working_copy(&self, _: BackupId) -> Box<dyn Send> {
        Box::new(())
    }
    /// Writes a dump that is not visible yet, of at most so many bytes once compressed. An error leaves
    /// nothing behind.
    async fn write(
        &self,
        id: BackupId,
        most: u64,
        plain: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<Written, DumpError>;
    /// Makes the written dump, which has this hash, visible and durable. Idempotent.
    async fn keep(&self, id: BackupId, sha256: &Sha256) -> Result<(), DumpError>;
    /// Checks that the whole file has this hash, and then returns the uncompressed dump.
    async fn read(
        &self,
        id: BackupId,
        sha256: &Sha256,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, DumpError>;
    /// Deletes everything that was written. Idempotent.
    async fn discard(&self, id: BackupId) -> Result<(), DumpError>;
}

/// A dump that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The size of the compressed file in bytes.
    pub size: u64,
    /// The hash of the compressed file.
    pub sha256: Sha256,
    /// The first bytes of the uncompressed dump, at most 4 KiB.
    pub head: Vec<u8>,
    /// The last bytes of the uncompressed dump, at most 4 KiB.
    pub tail: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The stream to write ended with an error.
    #[error("{0}")]
    Source(String),
    /// The dump is larger than it may be.
    #[error("it is larger than it may be")]
    TooLarge,
    /// The disk failed or is nearly full, or the file is missing or damaged.
    #[error("{0}")]
    Disk(String),
}
