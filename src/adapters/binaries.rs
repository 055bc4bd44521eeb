//! The bytes of artifacts. Uploads are staged in a folder; verified artifacts are kept in an object
//! store.
//!
//! The object store is a folder of the data directory or an S3 bucket. Keeping an artifact renames
//! the file, or uploads it to the bucket in parts.

use super::credential_files::distribution;
use crate::process;
use actors::{
    ports::{
        PortError,
        binaries::{AppMetadata, Binaries, Examined},
    },
    runtime::turns::{Tenant, Turns},
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    ArtifactId,
    artifacts::{AppProfile, ArtifactKind, Signer},
};
use credentials::{InstallsOn, installs_on};
use data_encoding::HEXLOWER;
use futures_util::{Stream, StreamExt};
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart,
    aws::AmazonS3Builder, path::Path as Key,
};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::io::AsyncReadExt;

const BLOCK: usize = 1 << 20;
/// The bytes between two moments at which other threads go first.
const HASHED_AT_ONCE: usize = 64 << 10;
/// Apple registers 100 devices of each of five families for a team in a year.
const MOST_DEVICES: usize = 500;
/// Characters at the end of the identifier of a device: a person recognizes their own by them, and nobody
/// else learns it.
const SHOWN_OF_A_DEVICE: usize = 6;
/// How long a bucket may take to answer a request of a caller.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long a bucket may be silent during a transfer.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);

pub struct Vault {
    staging: PathBuf,
    /// The folder of the object store, unless it is a bucket.
    folder: Option<PathBuf>,
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    verifications: Turns<Tenant>,
}

impl Vault {
    /// Stages uploads under `data`. Keeps artifacts under `data` too, or in the bucket that `store`
    /// names.
    pub fn open(data: &Path, store: Option<&str>) -> Result<Vault, String> {
        let (staging, verifications) = (data.join("staging"), Turns::two_for_each_processor());
        let describe = |e: &dyn std::fmt::Display| format!("the artifact store: {e}");
        std::fs::create_dir_all(&staging).map_err(|e| describe(&e))?;
        let Some(address) = store else {
            let folder = data.join("artifacts");
            std::fs::create_dir_all(&folder).map_err(|e| describe(&e))?;
            let objects = object_store::local::LocalFileSystem::new_with_prefix(&folder)
                .map_err(|e| describe(&e))?;
            return Ok(Vault {
                staging,
                folder: Some(folder),
                objects: Arc::new(objects),
                prefix: Key::default(),
                verifications,
            });
        };
        let bucket =
            address.strip_prefix("s3://").ok_or_else(|| describe(&"must begin with s3://"))?;
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let objects = s3().with_bucket_name(bucket).build().map_err(|e| describe(&e))?;
        Ok(Vault {
            staging,
            folder: None,
            objects: Arc::new(objects),
            prefix: Key::from(prefix),
            verifications,
        })
    }

    /// The staged file of an artifact. Its name is an id, never text from a caller.
    pub fn staged_path(&self, id: ArtifactId) -> PathBuf {
        self.staging.join(id.to_string())
    }

    /// Removes an empty staged file that a late writer has just created.
    pub fn forget_stray(&self, id: ArtifactId, staged: &File) {
        if staged.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = std::fs::remove_file(self.staged_path(id));
        }
    }

    fn key(&self, id: ArtifactId) -> Key {
        self.prefix.clone().join(id.to_string())
    }

    /// The bytes of a kept artifact in this range.
    pub async fn read(
        &self,
        id: ArtifactId,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = object_store::Result<Bytes>> + use<>, PortError> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let key = self.key(id);
        let found = tokio::time::timeout(ANSWERS_WITHIN, self.objects.get_opts(&key, options));
        Ok(found.await.map_err(failed)?.map_err(failed)?.into_stream())
    }

    /// Copies a kept artifact back into staging. A crash can separate keeping an artifact from
    /// recording that.
    async fn fetch_back(&self, id: ArtifactId) -> Result<(), PortError> {
        let mut bytes = self.objects.get(&self.key(id)).await.map_err(failed)?.into_stream();
        let path = self.staged_path(id);
        let partial = path.with_extension("partial");
        let mut file = tokio::fs::File::create(&partial).await.map_err(failed)?;
        while let Some(block) = bytes.next().await {
            tokio::io::AsyncWriteExt::write_all(&mut file, &block.map_err(failed)?)
                .await
                .map_err(failed)?;
        }
        file.sync_all().await.map_err(failed)?;
        tokio::fs::rename(&partial, &path).await.map_err(failed)
    }

    async fn upload(&self, path: &Path, key: &Key) -> Result<(), PortError> {
        let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
        let mut parts = WriteMultipart::new_with_chunk_size(
            self.objects.put_multipart(key).await.map_err(failed)?,
            8 * BLOCK,
        );
        match send(&mut file, &mut parts).await {
            Ok(()) => parts.finish().await.map_err(failed).map(|_| ()),
            Err(e) => {
                // Without this, the bucket would store and bill the incomplete parts.
                let _ = parts.abort().await;
                Err(e)
            }
        }
    }
}

async fn send(file: &mut tokio::fs::File, parts: &mut WriteMultipart) -> Result<(), PortError> {
    let mut block = vec![0; BLOCK];
    loop {
        let n = file.read(&mut block).await.map_err(failed)?;
        match block.get(..n) {
            Some([]) | None => return Ok(()),
            Some(bytes) => {
                // At most four parts are in transfer: memory does not grow with the file.
                parts.wait_for_capacity(4).await.map_err(failed)?;
                parts.write(bytes);
            }
        }
    }
}

/// Reads the `AWS_` variables and sets the limits. The limits bound silence and not the whole
/// transfer, because a download is as slow as its reader. Callers retry by themselves, so few
/// retries suffice.
fn s3() -> AmazonS3Builder {
    let limits = ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(5))
        .with_read_timeout(SILENT_AT_MOST)
        .with_timeout_disabled();
    let retry = RetryConfig { max_retries: 3, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new().with_client_options(limits).with_retry(retry);
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && name.starts_with("AWS_")
            && let Ok(key) = name.to_ascii_lowercase().parse()
        {
            builder = builder.with_config(key, value);
        }
    }
    builder
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
    async fn staged(&self, id: ArtifactId) -> Result<Option<u64>, PortError> {
        match tokio::fs::metadata(self.staged_path(id)).await {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    async fn reach(&self, id: ArtifactId) -> Result<(), PortError> {
        let key = self.key(id);
        let asked = tokio::time::timeout(ANSWERS_WITHIN, self.objects.head(&key));
        match asked.await.map_err(failed)? {
            // Without the permission to list, S3 denies access to a missing key.
            Ok(_)
            | Err(
                object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. },
            ) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }

    async fn examine(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        kind: ArtifactKind,
    ) -> Result<Examined, PortError> {
        let path = self.staged_path(id);
        if self.staged(id).await?.is_none() {
            self.fetch_back(id).await?;
        }
        let turn = self.verifications.take(tenant).await.map_err(failed)?;
        let examined = process::after_others("verification", move || {
            // The work keeps its turn and the lock even if nobody waits for it.
            let _turn = turn;
            let _alone = lock(&path)?;
            examine(&path, kind)
        });
        examined.await.flatten().map_err(failed)
    }

    async fn keep(&self, id: ArtifactId, _: &Examined) -> Result<(), PortError> {
        let (path, key) = (self.staged_path(id), self.key(id));
        if self.staged(id).await?.is_none() {
            return self.objects.head(&key).await.map(|_| ()).map_err(failed);
        }
        match &self.folder {
            Some(folder) => {
                let folder = folder.clone();
                blocking(move || {
                    lock(&path)?.sync_all()?;
                    std::fs::rename(&path, folder.join(id.to_string()))?;
                    File::open(&folder)?.sync_all()
                })
                .await
            }
            None => {
                self.upload(&path, &key).await?;
                tokio::fs::remove_file(&path).await.map_err(failed)
            }
        }
    }

    async fn part(&self, id: ArtifactId, offset: u64, length: u64) -> Result<Bytes, PortError> {
        let range = GetRange::Bounded(offset..offset + length);
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let key = self.key(id);
        let read = async { self.objects.get_opts(&key, options).await?.bytes().await };
        let bytes = tokio::time::timeout(SILENT_AT_MOST, read).await.map_err(failed)?;
        bytes.map_err(failed)
    }

    async fn discard(&self, id: ArtifactId) -> Result<(), PortError> {
        match tokio::fs::remove_file(self.staged_path(id)).await {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        match self.objects.delete(&self.key(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }
}

/// Opens and locks the staged file. Fails while a writer holds the lock; the caller tries again.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    file.try_lock().map_err(|_| io::Error::other("bytes are still being written"))?;
    Ok(file)
}

/// Hashes all bytes, then inspects the app.
fn examine(path: &Path, kind: ArtifactKind) -> io::Result<Examined> {
    let (size, sha256) = hash(&mut File::open(path)?)?;
    let kind = match kind {
        ArtifactKind::Ipa => app_inspect::Kind::Ipa,
        ArtifactKind::Apk => app_inspect::Kind::Apk,
        ArtifactKind::Aab => app_inspect::Kind::Aab,
    };
    let content = match app_inspect::inspect(path, kind, &app_inspect::Limits::default()) {
        Ok(report) => Ok(AppMetadata {
            identifier: report.identifier,
            version: report.version,
            build_number: report.build_number,
            signer: report.signer.and_then(|signer| {
                Some(Signer { sha256: signer.sha256.parse().ok()?, subject: signer.subject })
            }),
            profile: report.profile.and_then(|profile| installs_on(&profile)).map(profile_of),
        }),
        Err(app_inspect::Failure::Refused(why)) => Err(why.to_string()),
        Err(app_inspect::Failure::Io(e)) => return Err(e),
    };
    Ok(Examined { size, sha256, content })
}

fn profile_of(found: InstallsOn) -> AppProfile {
    let ending = |udid: &String| {
        let skipped = udid.chars().count().saturating_sub(SHOWN_OF_A_DEVICE);
        udid.chars().skip(skipped).collect()
    };
    AppProfile {
        distribution: distribution(found.kind),
        expires_at: found.expires_at,
        device_endings: found.devices.iter().take(MOST_DEVICES).map(ending).collect(),
    }
}

/// The number of bytes from the current position to the end, and their hash. Lets other threads go first after each
/// piece: short requests would wait for a processor.
pub fn hash(file: &mut File) -> io::Result<(u64, contract::Sha256)> {
    let (mut hasher, mut size, mut piece) = (Sha256::new(), 0, vec![0; HASHED_AT_ONCE]);
    loop {
        let n = file.read(&mut piece)?;
        match piece.get(..n) {
            Some([]) | None => break,
            Some(bytes) => hasher.update(bytes),
        }
        size += n as u64;
        thread::yield_now();
    }
    let sha256 = HEXLOWER.encode(&hasher.finalize()).parse().map_err(io::Error::other)?;
    Ok((size, sha256))
}
