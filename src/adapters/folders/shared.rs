//! The archives of folders in a bucket that nodes share.
//!
//! An object has no time of its last use. A mark does: an object beside the archive that is written anew at each use.

use super::{is_over, name, surplus};
use crate::adapters::{machine::ThisMachine, objects::Objects};
use actors::ports::PortError;
use bytes::Bytes;
use contract::{AppId, Sha256};
use repository::folder::FolderKind;
use std::{collections::HashMap, fs::File, time::SystemTime};
use tokio::io::AsyncSeekExt;

pub(super) struct Shared {
    pub(super) objects: Objects,
    pub(super) machine: ThisMachine,
}

/// The ending of the mark of an archive.
const MARK: &str = ".used";

impl Shared {
    /// Stores an archive. Then removes the oldest of the app beyond those that are kept.
    pub(super) async fn keep(
        &self,
        app: AppId,
        sha256: &Sha256,
        kind: FolderKind,
        file: File,
        size: u64,
    ) -> Result<(), PortError> {
        let kept = key(app, sha256, kind);
        self.objects.send(&kept, file, 0..size).await?;
        self.mark(&kept).await?;
        for name in surplus(self.last_uses(&app.to_string()).await?, &kept) {
            self.remove(&name).await?;
        }
        Ok(())
    }

    pub(super) async fn renew(
        &self,
        app: AppId,
        sha256: &Sha256,
    ) -> Result<Option<FolderKind>, PortError> {
        for kind in FolderKind::ALL {
            let name = key(app, sha256, kind);
            if self.objects.has(&name).await? {
                self.mark(&name).await?;
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// Fills a file with an archive.
    pub(super) async fn fetch(
        &self,
        app: AppId,
        sha256: &Sha256,
        kind: FolderKind,
        file: File,
    ) -> Result<File, PortError> {
        let mut file = tokio::fs::File::from_std(file);
        self.objects.fetch(&key(app, sha256, kind), &mut file, &self.machine).await?;
        file.rewind().await.map_err(|e| PortError(e.to_string()))?;
        Ok(file.into_std().await)
    }

    /// Removes the archives whose time has passed, and returns their number.
    pub(super) async fn forget(&self, now: SystemTime) -> Result<u64, PortError> {
        let mut gone = 0;
        for (used_at, name) in self.last_uses("").await? {
            if is_over(used_at, now) {
                self.remove(&name).await?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    /// The archives below this folder, each with the time of its last use.
    async fn last_uses(&self, folder: &str) -> Result<Vec<(SystemTime, String)>, PortError> {
        let mut uses = HashMap::<String, SystemTime>::new();
        for object in self.objects.list(folder).await? {
            let name = object.name.strip_suffix(MARK).unwrap_or(&object.name);
            let used_at = uses.entry(name.to_owned()).or_insert(object.written_at);
            *used_at = object.written_at.max(*used_at);
        }
        Ok(uses.into_iter().map(|(name, used_at)| (used_at, name)).collect())
    }

    async fn mark(&self, name: &str) -> Result<(), PortError> {
        self.objects.put(&format!("{name}{MARK}"), Bytes::new()).await
    }

    async fn remove(&self, name: &str) -> Result<(), PortError> {
        self.objects.remove(name).await?;
        self.objects.remove(&format!("{name}{MARK}")).await
    }
}

fn key(app: AppId, sha256: &Sha256, kind: FolderKind) -> String {
    format!("{app}/{}", name(sha256, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actors::ports::folders::{KEPT_FOR, KEPT_OF_APP};
    use std::{io::Write, time::Duration};

    #[tokio::test]
    async fn archives_that_nodes_share_are_kept_for_a_day_and_the_last_ones_of_an_app() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::folder(folder.path()).unwrap();
        let shared = Shared { objects, machine: ThisMachine { data: folder.path().into() } };
        let app: AppId = "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let hash = |n: usize| format!("{n:064x}").parse::<Sha256>().unwrap();
        let kind = FolderKind::CloudCode;
        let unused = |n: usize, age: Duration| {
            let path = folder.path().join(key(app, &hash(n), kind));
            for path in [path.with_added_extension("used"), path] {
                let file = File::options().append(true).open(path).unwrap();
                file.set_modified(SystemTime::UNIX_EPOCH + KEPT_FOR * 2 - age).unwrap();
            }
        };
        for n in 0..=KEPT_OF_APP {
            let mut file = tempfile::tempfile().unwrap();
            write!(file, "archive {n:02}").unwrap();
            shared.keep(app, &hash(n), kind, file, 10).await.unwrap();
            // The first is the oldest.
            unused(n, KEPT_FOR / 2 - Duration::from_secs(60 * n as u64));
        }
        assert_eq!(shared.renew(app, &hash(0)).await.unwrap(), None, "it was one too many");
        let fetched = shared.fetch(app, &hash(3), kind, tempfile::tempfile().unwrap()).await;
        assert_eq!(std::io::read_to_string(fetched.unwrap()).unwrap(), "archive 03");
        for n in 1..4 {
            unused(n, KEPT_FOR + Duration::from_secs(60));
        }
        // A use counts.
        assert_eq!(shared.renew(app, &hash(3)).await.unwrap(), Some(kind));
        assert_eq!(shared.forget(SystemTime::UNIX_EPOCH + KEPT_FOR * 2).await.unwrap(), 2);
        let left = shared.last_uses("").await.unwrap();
        assert_eq!(left.len(), KEPT_OF_APP - 2);
    }
}
