//! The bytes of artifacts. Uploads are staged, and verified artifacts are kept.
//!
//! Artifacts are kept in a folder of the data directory or in an S3 bucket. The only node stages uploads in a
//! folder: keeping an artifact renames the file, or sends it to the bucket. Nodes that share the work stage
//! uploads in the bucket, a segment at a time; the node that verifies an artifact puts them together.

mod examination;

use super::{
    machine::ThisMachine,
    objects::{Objects, PART},
    scratch::{self, WorkingCopy},
};
use crate::process;
use actors::{
    ports::{
        PortError,
        binaries::{Binaries, Examined, Segment, Staged},
        random::Random,
    },
    runtime::turns::{Tenant, Turns},
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{ArtifactId, artifacts::ArtifactKind};
use examination::examine;
pub use examination::hash;
use futures_util::Stream;
use std::{
    fs::File,
    io,
    ops::Range,
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// The folder of staged uploads, in the data directory and in the bucket.
const STAGING: &str = "staging";
/// The folder of the data directory where a node that shares the uploads puts them together. A start empties it.
const ASSEMBLED: &str = "assembled";
/// The longest segment of a shared upload, in bytes.
pub const SEGMENT: u64 = PART;

/// Where artifacts are kept.
pub enum Place {
    /// In this folder.
    Folder(PathBuf),
    /// In a bucket.
    Bucket {
        objects: Objects,
        /// Whether other nodes use it too. Then uploads are staged there.
        is_shared: bool,
    },
}

/// The artifacts of a service, and the uploads of new ones.
pub struct Vault {
    staging: PathBuf,
    /// The folder of kept artifacts, unless they are in a bucket.
    folder: Option<PathBuf>,
    objects: Objects,
    /// The staged uploads of all nodes, where nodes share the work.
    shared: Option<Objects>,
    random: Random,
    machine: ThisMachine,
    verifications: Turns<Tenant>,
    segments: Turns<Tenant>,
}

impl Vault {
    /// Stages uploads under `data`, unless nodes share them.
    pub fn open(data: &Path, kept: Place) -> Result<Vault, String> {
        let describe = |e: &dyn std::fmt::Display| format!("the artifact store: {e}");
        let (folder, objects, shared) = match kept {
            Place::Folder(folder) => {
                std::fs::create_dir_all(&folder).map_err(|e| describe(&e))?;
                let objects = Objects::folder(&folder).map_err(|e| describe(&e))?;
                (Some(folder), objects, None)
            }
            Place::Bucket { objects, is_shared } => {
                let shared = is_shared.then(|| objects.below(STAGING));
                (None, objects, shared)
            }
        };
        let staging = data.join(if shared.is_some() { ASSEMBLED } else { STAGING });
        let made = match &shared {
            Some(_) => scratch::empty(&staging),
            None => std::fs::create_dir_all(&staging),
        };
        made.map_err(|e| describe(&e))?;
        Ok(Vault {
            machine: ThisMachine { data: staging.clone() },
            staging,
            folder,
            objects,
            shared,
            random: Random::default(),
            verifications: Turns::two_for_each_processor(),
            segments: Turns::two_for_each_processor(),
        })
    }

    /// Fails if what nodes need of the bucket is refused. If the bucket does not answer, that is in the log.
    pub async fn check(&self) -> Result<(), String> {
        let Some(shared) = &self.shared else { return Ok(()) };
        match shared.may_list().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(
                "SVC_NODES=several needs the right to list the objects of the bucket (s3:ListBucket)"
                    .into(),
            ),
            Err(e) => {
                tracing::warn!(error = %e, "the bucket does not answer");
                Ok(())
            }
        }
    }

    /// Whether nodes share the uploads. If so, bytes count once they are in a segment.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// A file without a name, for the bytes of a request until they are in segments.
    pub fn unnamed(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.staging)
    }

    /// Writes bytes of a scratch file, at most [`SEGMENT`], as a segment of the upload. Waits for a turn; the
    /// uploads of one tenant do not block those of others.
    pub async fn share(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        scratch: File,
        range: Range<u64>,
    ) -> Result<Segment, PortError> {
        let shared = self.shared.as_ref().ok_or_else(|| failed("uploads are not shared"))?;
        let _turn = self.segments.take(tenant).await.map_err(failed)?;
        let segment = Segment { end: range.end, name: self.random.secret("", 16).map_err(failed)? };
        shared.send(&name_of(id, &segment), scratch, range).await?;
        Ok(segment)
    }

    /// Removes segments that no longer count. Those that stay go with the upload.
    pub async fn remove_segments(&self, id: ArtifactId, segments: &[Segment]) {
        let Some(shared) = &self.shared else { return };
        for segment in segments {
            if let Err(e) = shared.remove(&name_of(id, segment)).await {
                tracing::warn!(%id, error = %e, "a segment of an upload stays until the upload ends");
            }
        }
    }

    /// The staged file of an artifact. Its name is an id, never text from a caller.
    pub fn staged_path(&self, id: ArtifactId) -> PathBuf {
        self.staging.join(id.to_string())
    }

    /// Removes an empty staged file that a late writer has just created.
    pub fn remove_if_empty(&self, id: ArtifactId, staged: &File) {
        if !self.is_shared() && staged.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = std::fs::remove_file(self.staged_path(id));
        }
    }

    /// The bytes of a kept artifact in this range.
    pub async fn read(
        &self,
        id: ArtifactId,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, PortError>> + use<>, PortError> {
        self.objects.read(&id.to_string(), range).await
    }

    /// The size of the staged file, if there is one.
    async fn staged_size(&self, id: ArtifactId) -> Result<Option<u64>, PortError> {
        match tokio::fs::metadata(self.staged_path(id)).await {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    /// Makes the staged file out of the segments, or out of the kept artifact: a crash can separate keeping an
    /// artifact from recording that.
    async fn fetch(&self, id: ArtifactId, recorded: &Staged) -> Result<(), PortError> {
        let staging = self.staging.clone();
        let partial = blocking(move || NamedTempFile::new_in(staging)).await?;
        let mut file = tokio::fs::File::from_std(partial.reopen().map_err(failed)?);
        match &self.shared {
            Some(shared) if !self.objects.has(&id.to_string()).await? => {
                let end = recorded.segments.last().map_or(0, |segment| segment.end);
                if end != recorded.offset {
                    return Err(failed("its bytes are not in the bucket that nodes share"));
                }
                for segment in &recorded.segments {
                    shared.fetch(&name_of(id, segment), &mut file, &self.machine).await?;
                }
            }
            _ => self.objects.fetch(&id.to_string(), &mut file, &self.machine).await?,
        }
        file.sync_all().await.map_err(failed)?;
        partial.persist(self.staged_path(id)).map(|_| ()).map_err(failed)
    }

    /// Removes all segments of an upload, also those that no record names.
    async fn remove_upload(&self, id: ArtifactId) -> Result<(), PortError> {
        match &self.shared {
            Some(shared) => shared.remove_all(&id.to_string()).await,
            None => Ok(()),
        }
    }
}

fn name_of(id: ArtifactId, segment: &Segment) -> String {
    format!("{id}/{}", segment.name)
}

fn failed(e: impl std::fmt::Display) -> PortError {
    PortError(e.to_string())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PortError> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?.map_err(failed)
}

#[async_trait]
impl Binaries for Vault {
    async fn staged(&self, id: ArtifactId, recorded: &Staged) -> Result<u64, PortError> {
        let here = match &self.shared {
            Some(_) => recorded.segments.last().map(|segment| segment.end),
            None => self.staged_size(id).await?,
        };
        Ok(recorded.offset.min(here.unwrap_or(0)))
    }

    fn working_copy(&self, id: ArtifactId) -> Box<dyn Send> {
        match self.is_shared() {
            true => Box::new(WorkingCopy(self.staged_path(id))),
            false => Box::new(()),
        }
    }

    async fn reach(&self, id: ArtifactId) -> Result<(), PortError> {
        self.objects.has(&id.to_string()).await.map(|_| ())
    }

    async fn examine(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        kind: ArtifactKind,
        recorded: &Staged,
    ) -> Result<Examined, PortError> {
        let path = self.staged_path(id);
        let turn = self.verifications.take(tenant).await.map_err(failed)?;
        if self.staged_size(id).await?.is_none() {
            self.fetch(id, recorded).await?;
        }
        let examined = process::after_others("verification", move || {
            // The work keeps its turn and the lock even if nobody waits for it.
            let _turn = turn;
            let _alone = lock(&path)?;
            examine(&path, kind)
        });
        examined.await.flatten().map_err(failed)
    }

    async fn keep(&self, id: ArtifactId, examined: &Examined) -> Result<(), PortError> {
        let (path, name) = (self.staged_path(id), id.to_string());
        if self.staged_size(id).await?.is_none() {
            return match self.objects.has(&name).await? {
                true => self.remove_upload(id).await,
                false => Err(failed("the bytes are neither staged nor kept")),
            };
        }
        match &self.folder {
            Some(folder) => {
                let folder = folder.clone();
                blocking(move || {
                    lock(&path)?.sync_all()?;
                    std::fs::rename(&path, folder.join(name))?;
                    File::open(&folder)?.sync_all()
                })
                .await
            }
            None => {
                let staged = path.clone();
                let file = blocking(move || File::open(staged)).await?;
                self.objects.send(&name, file, 0..examined.size).await?;
                tokio::fs::remove_file(&path).await.map_err(failed)?;
                self.remove_upload(id).await
            }
        }
    }

    async fn part(&self, id: ArtifactId, offset: u64, length: u64) -> Result<Bytes, PortError> {
        self.objects.part(&id.to_string(), offset..offset + length).await
    }

    async fn discard(&self, id: ArtifactId) -> Result<(), PortError> {
        match tokio::fs::remove_file(self.staged_path(id)).await {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        self.remove_upload(id).await?;
        self.objects.remove(&id.to_string()).await
    }
}

/// Opens and locks the staged file. Fails while a writer holds the lock; the caller tries again.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    file.try_lock().map_err(|_| io::Error::other("bytes are still being written"))?;
    Ok(file)
}
