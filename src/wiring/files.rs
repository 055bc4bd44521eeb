//! The files of the service: in the data directory, or in the bucket that nodes share.

use crate::{
    adapters::{
        audit_archive::{AuditBucket, AuditFolder},
        binaries::{Place, Vault},
        dumps::DumpFolder,
        folders::FolderStore,
        objects::Objects,
    },
    config::storage::StorageArgs,
};
use actors::ports::audit_archive::AuditArchive;
use std::sync::Arc;
use store::Nodes;

/// The files of the service.
pub(super) struct Files {
    pub vault: Arc<Vault>,
    pub dumps: Arc<DumpFolder>,
    pub folders: Arc<FolderStore>,
    pub audit_archive: Arc<dyn AuditArchive>,
}

impl Files {
    /// Opens them in the data directory, or in the bucket that nodes share.
    pub fn open(storage: &StorageArgs, nodes: Nodes) -> Result<Files, String> {
        let data = &storage.data;
        let bucket = storage.artifact_store.as_deref().map(Objects::bucket).transpose();
        let bucket = bucket.map_err(|e| format!("the artifact store: {e}"))?;
        let is_shared = nodes == Nodes::Several;
        let shared = bucket.clone().filter(|_| is_shared);
        let shared = |folder| shared.as_ref().map(|bucket| bucket.below(folder));
        let kept = match bucket {
            Some(objects) => Place::Bucket { objects, is_shared },
            None => Place::Folder(data.join("artifacts")),
        };
        let dumps = DumpFolder::open(data.join("backups"), shared("backups"));
        let folders = FolderStore::open(data.join("folders"), shared("folders"));
        let audit_archive: Arc<dyn AuditArchive> = match shared("audit") {
            Some(bucket) => Arc::new(AuditBucket(bucket)),
            None => Arc::new(
                AuditFolder::open(data.join("audit"))
                    .map_err(|e| format!("the archive of the audit log: {e}"))?,
            ),
        };
        Ok(Files {
            vault: Arc::new(Vault::open(data, kept)?),
            dumps: Arc::new(dumps.map_err(|e| format!("backups: {e}"))?),
            folders: Arc::new(folders.map_err(|e| format!("folders: {e}"))?),
            audit_archive,
        })
    }
}
