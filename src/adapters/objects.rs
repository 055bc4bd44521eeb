//! Named objects: those of an S3 bucket, or the files of a folder in place of one.

use actors::ports::{PortError, machine::Machine};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart,
    aws::AmazonS3Builder, local::LocalFileSystem, path::Path as Key,
};
use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The bytes that are read from a file or received at a time.
const BLOCK: u64 = 1 << 20;
/// The bytes that are sent in one request. A bucket takes parts from 5 MiB on.
pub const PART: u64 = 8 << 20;
/// The parts of one file in transfer: memory does not grow with the file.
const PARTS_AT_ONCE: usize = 4;
/// How long a bucket may take to answer a request of a caller.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long a bucket may be silent during a transfer.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);

/// Objects whose names have a common beginning. A name is made of ids and hashes, never of text from a caller.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

/// An object of a list.
pub struct Listed {
    /// What follows the common beginning.
    pub name: String,
    pub written_at: SystemTime,
}

impl Objects {
    /// The files of a folder.
    pub fn folder(path: &Path) -> Result<Objects, String> {
        let store = LocalFileSystem::new_with_prefix(path).map_err(|e| e.to_string())?;
        Ok(Objects { store: Arc::new(store), prefix: String::new() })
    }

    /// The objects of a bucket, whose address is as in `s3://bucket/prefix`. The `AWS_` variables have the
    /// rest.
    pub fn bucket(address: &str) -> Result<Objects, String> {
        let bucket = address.strip_prefix("s3://").ok_or("must begin with s3://")?;
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let store = s3().with_bucket_name(bucket).build().map_err(|e| e.to_string())?;
        Ok(Objects { store: Arc::new(store), prefix: prefix.into() })
    }

    /// The objects whose names begin with this folder.
    pub fn below(&self, folder: &str) -> Objects {
        Objects { store: self.store.clone(), prefix: format!("{}/{folder}", self.prefix) }
    }

    fn key(&self, name: &str) -> Key {
        Key::from(format!("{}/{name}", self.prefix))
    }

    /// Whether there is an object of this name. Fails if the bucket does not answer.
    pub async fn has(&self, name: &str) -> Result<bool, PortError> {
        let key = self.key(name);
        match soon(self.store.head(&key)).await? {
            Ok(_) => Ok(true),
            // Without the permission to list, S3 denies access to a missing key.
            Err(
                object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. },
            ) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }

    /// Writes an object of few bytes.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), PortError> {
        let key = self.key(name);
        self.store.put(&key, bytes.into()).await.map(|_| ()).map_err(failed)
    }

    /// Writes the bytes of a file in this range as one object.
    pub async fn send(&self, name: &str, file: File, range: Range<u64>) -> Result<(), PortError> {
        let (file, key) = (Arc::new(file), self.key(name));
        if range.end - range.start <= PART {
            return self.put(name, read_at(&file, range).await?).await;
        }
        let parts = self.store.put_multipart(&key).await.map_err(failed)?;
        let mut parts =
            WriteMultipart::new_with_chunk_size(parts, usize::try_from(PART).unwrap_or(usize::MAX));
        match send(&file, range, &mut parts).await {
            Ok(()) => parts.finish().await.map_err(failed).map(|_| ()),
            Err(e) => {
                // Without this, the bucket would store and bill the incomplete parts.
                let _ = parts.abort().await;
                Err(e)
            }
        }
    }

    /// The bytes of an object in this range.
    pub async fn read(
        &self,
        name: &str,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, PortError>> + use<>, PortError> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let key = self.key(name);
        let found = soon(self.store.get_opts(&key, options)).await?.map_err(failed)?;
        Ok(found.into_stream().map_err(failed))
    }

    /// Few bytes of an object.
    pub async fn part(&self, name: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let key = self.key(name);
        let read = tokio::time::timeout(SILENT_AT_MOST, self.store.get_range(&key, range));
        read.await.map_err(failed)?.map_err(failed)
    }

    /// Appends the bytes of an object to a file of this machine. Fails while its disk is nearly full.
    pub async fn fetch(
        &self,
        name: &str,
        file: &mut tokio::fs::File,
        machine: &dyn Machine,
    ) -> Result<(), PortError> {
        let key = self.key(name);
        let found = soon(self.store.get(&key)).await?.map_err(failed)?;
        machine.check_room(found.meta.size).map_err(failed)?;
        let mut bytes = found.into_stream();
        while let Some(block) = bytes.next().await {
            let block = block.map_err(failed)?;
            tokio::io::AsyncWriteExt::write_all(file, &block).await.map_err(failed)?;
        }
        tokio::io::AsyncWriteExt::flush(file).await.map_err(failed)
    }

    /// Removes an object. Idempotent.
    pub async fn remove(&self, name: &str) -> Result<(), PortError> {
        match self.store.delete(&self.key(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }

    /// Whether the right to list objects is given. Fails if the bucket does not answer.
    pub async fn may_list(&self) -> Result<bool, PortError> {
        let all = self.key("");
        match soon(self.store.list(Some(&all)).next()).await? {
            None | Some(Ok(_)) => Ok(true),
            Some(Err(
                object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. },
            )) => Ok(false),
            Some(Err(e)) => Err(failed(e)),
        }
    }

    /// The objects whose names begin with this folder; `""` for all.
    pub async fn list(&self, folder: &str) -> Result<Vec<Listed>, PortError> {
        let (all, below) = (self.key(""), self.key(folder));
        let listed = self.store.list(Some(&below)).map_ok(|object| Listed {
            name: object.location.prefix_match(&all).map_or_else(String::new, |parts| {
                parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/")
            }),
            written_at: object.last_modified.into(),
        });
        listed.try_collect().await.map_err(failed)
    }

    /// Removes the objects whose names begin with this folder. Idempotent.
    pub async fn remove_all(&self, folder: &str) -> Result<(), PortError> {
        for object in self.list(folder).await? {
            self.remove(&object.name).await?;
        }
        Ok(())
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

async fn send(
    file: &Arc<File>,
    range: Range<u64>,
    parts: &mut WriteMultipart,
) -> Result<(), PortError> {
    let mut next = range.start;
    while next < range.end {
        let end = range.end.min(next + BLOCK);
        let block = read_at(file, next..end).await?;
        parts.wait_for_capacity(PARTS_AT_ONCE).await.map_err(failed)?;
        parts.put(block);
        next = end;
    }
    Ok(())
}

/// Reads bytes of a file, and leaves the position of others who use it as it is.
async fn read_at(file: &Arc<File>, range: Range<u64>) -> Result<Bytes, PortError> {
    let file = file.clone();
    let read = move || -> io::Result<Bytes> {
        let size = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes.into())
    };
    tokio::task::spawn_blocking(read).await.map_err(failed)?.map_err(failed)
}

async fn soon<T>(answer: impl Future<Output = T>) -> Result<T, PortError> {
    tokio::time::timeout(ANSWERS_WITHIN, answer).await.map_err(failed)
}

fn failed(e: impl std::fmt::Display) -> PortError {
    PortError(e.to_string())
}
