//! The archives of folders, which deployments build: files of the data directory, or objects of a bucket that nodes
//! share, by app and hash.
//!
//! An archive is written to a temporary file and checked. Then it is synced and renamed, or sent to the bucket. So
//! what has the name of an archive is a whole and checked one. How its folder is built is part of the name.

mod shared;

use super::{
    archive::{self, ArchiveError},
    machine::ThisMachine,
    objects::Objects,
    scratch,
};
use crate::process;
use actors::{
    ports::{
        PortError,
        folders::{Folders, KEPT_FOR, KEPT_OF_APP},
    },
    runtime::turns::{Tenant, Turns},
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{AppId, Sha256};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use repository::folder::FolderKind;
use shared::Shared;
use std::{
    error::Error,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Seek, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

/// The maximum number of pieces in the queue between reader and engine.
const WAITING: usize = 16;
const PIECE: usize = 64 << 10;
/// The temporary files, whose folder has the name of no app.
const PARTIAL: &str = "partial";

/// The archives of a service.
pub struct FolderStore {
    root: PathBuf,
    /// Where the archives are, if nodes share them.
    shared: Option<Shared>,
    checks: Turns<Tenant>,
}

impl FolderStore {
    /// Opens the folder, or creates it. What a crash left unfinished is removed.
    pub fn open(root: PathBuf, shared: Option<Objects>) -> io::Result<FolderStore> {
        scratch::empty(&root.join(PARTIAL))?;
        let machine = ThisMachine { data: root.clone() };
        let shared = shared.map(|objects| Shared { objects, machine });
        Ok(FolderStore { root, shared, checks: Turns::two_for_each_processor() })
    }

    /// A file for an archive that arrives. It is removed when it is dropped.
    pub fn begin(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(self.root.join(PARTIAL))
    }

    /// Checks an archive that has arrived, and stores it durably. Then removes the oldest of the app
    /// beyond [`KEPT_OF_APP`].
    pub async fn keep(
        &self,
        tenant: Tenant,
        app: AppId,
        sha256: &Sha256,
        arrived: NamedTempFile,
    ) -> Result<(), ArchiveError> {
        let failed = |e: Box<dyn Error + Send + Sync>| ArchiveError::Io(io::Error::other(e));
        let turn = self.checks.take(tenant).await.map_err(|e| failed(e.into()))?;
        let checked = process::after_others("folder", move || {
            let _turn = turn;
            check(arrived)
        });
        let (kind, size, arrived) = checked.await.map_err(|e| failed(e.into()))??;
        if let Some(shared) = &self.shared {
            let file = arrived.into_file();
            return shared.keep(app, sha256, kind, file, size).await.map_err(|e| failed(e.into()));
        }
        let (root, path) = (self.root.clone(), path(&self.root, app, sha256, kind));
        let placed = tokio::task::spawn_blocking(move || place(&root, app, &path, arrived));
        placed.await.map_err(|e| failed(e.into()))?.map_err(ArchiveError::Io)
    }

    /// The file of an archive.
    async fn file(&self, app: AppId, sha256: &Sha256, kind: FolderKind) -> Result<File, PortError> {
        if let Some(shared) = &self.shared {
            let root = self.root.clone();
            let file = blocking(move || tempfile::tempfile_in(root)).await?;
            return shared.fetch(app, sha256, kind, file).await;
        }
        let path = path(&self.root, app, sha256, kind);
        blocking(move || File::open(path)).await
    }
}

/// Checks an archive that has arrived. Returns how its folder is built, and its size in bytes.
fn check(mut arrived: NamedTempFile) -> Result<(FolderKind, u64, NamedTempFile), ArchiveError> {
    let file = arrived.as_file_mut();
    let size = file.stream_position().map_err(ArchiveError::Io)?;
    file.rewind().map_err(ArchiveError::Io)?;
    let kind = archive::check(BufReader::new(&*file), size)?;
    Ok((kind, size, arrived))
}

fn place(root: &Path, app: AppId, path: &Path, arrived: NamedTempFile) -> io::Result<()> {
    let folder = root.join(app.to_string());
    fs::create_dir_all(&folder)?;
    arrived.as_file().sync_all()?;
    arrived.persist(path).map_err(|e| e.error)?;
    File::open(&folder)?.sync_all()?;
    File::open(root)?.sync_all()?;
    surplus(files(&folder)?, &path.to_owned()).iter().try_for_each(|path| remove(path))
}

/// The archives of an app that go because this one was added: the oldest ones beyond [`KEPT_OF_APP`].
fn surplus<T: Ord>(mut uses: Vec<(SystemTime, T)>, added: &T) -> Vec<T> {
    uses.retain(|(_, other)| other != added);
    uses.sort();
    uses.truncate((uses.len() + 1).saturating_sub(KEPT_OF_APP));
    uses.into_iter().map(|(_, archive)| archive).collect()
}

/// Whether nobody needs an archive any more that was used last at this time.
fn is_over(used_at: SystemTime, now: SystemTime) -> bool {
    now.duration_since(used_at).unwrap_or_default() > KEPT_FOR
}

fn path(root: &Path, app: AppId, sha256: &Sha256, kind: FolderKind) -> PathBuf {
    root.join(app.to_string()).join(name(sha256, kind))
}

/// The name of an archive among those of its app.
fn name(sha256: &Sha256, kind: FolderKind) -> String {
    let kind = match kind {
        FolderKind::Dockerfile => "dockerfile",
        FolderKind::CloudCode => "cloud",
        FolderKind::CloudCodeWithPackages => "cloud-npm",
    };
    format!("{sha256}.{kind}")
}

/// The files of a folder, each with the time of its last use.
fn files(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let with_time = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.metadata()?.modified()?, entry.path()))
    };
    fs::read_dir(folder)?.map(with_time).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PortError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|e| PortError(e.to_string()))?;
    done.map_err(|e| PortError(format!("the archives of folders: {e}")))
}

#[async_trait]
impl Folders for FolderStore {
    async fn renew(&self, app: AppId, sha256: &Sha256) -> Result<Option<FolderKind>, PortError> {
        if let Some(shared) = &self.shared {
            return shared.renew(app, sha256).await;
        }
        let paths = FolderKind::ALL.map(|kind| (kind, path(&self.root, app, sha256, kind)));
        blocking(move || {
            for (kind, path) in paths {
                match File::options().append(true).open(&path) {
                    Ok(file) => return file.set_modified(now()).map(|()| Some(kind)),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(None)
        })
        .await
    }

    async fn context(
        &self,
        app: AppId,
        sha256: &Sha256,
        kind: FolderKind,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, PortError> {
        let file = self.file(app, sha256, kind).await?;
        let (file, size) = blocking(move || {
            let size = file.metadata()?.len();
            Ok((file, size))
        })
        .await?;
        let (pieces, outgoing) = mpsc::channel(WAITING);
        tokio::task::spawn_blocking(move || {
            let mut to = BufWriter::with_capacity(PIECE, Pieces(pieces.clone()));
            let written = archive::write_context(BufReader::new(file), size, kind, &mut to);
            let written = written.and_then(|()| to.flush().map_err(ArchiveError::Io));
            if let Err(e) = written {
                let _ = pieces.blocking_send(Err(io::Error::other(e.to_string())));
            }
        });
        Ok(stream::unfold(outgoing, |mut outgoing| async move {
            outgoing.recv().await.map(|piece| (piece, outgoing))
        })
        .boxed())
    }

    async fn forget(&self) -> Result<u64, PortError> {
        if let Some(shared) = &self.shared {
            return shared.forget(now()).await;
        }
        let all = self.root.clone();
        blocking(move || {
            let mut gone = 0;
            for app in fs::read_dir(&all)? {
                for (used, path) in files(&app?.path())? {
                    if is_over(used, now()) {
                        remove(&path)?;
                        gone += 1;
                    }
                }
            }
            Ok(gone)
        })
        .await
    }
}

/// The time of the machine, which also gives the files theirs.
#[allow(clippy::disallowed_methods, reason = "compared with the times of files only")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Passes on what is written, until the receiver is gone.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::time::Duration;

    /// An archive of cloud code, and its hash, which only has to be unique here.
    fn archive(n: usize) -> (Vec<u8>, Sha256) {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, "cloud/main.js", io::empty()).unwrap();
        (tar.into_inner().unwrap().finish().unwrap(), format!("{n:064x}").parse().unwrap())
    }

    #[tokio::test]
    async fn an_archive_is_kept_for_a_day_and_the_last_ones_of_an_app() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path().into(), None).unwrap();
        let app: AppId = "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let of_age = |n: usize, age: Duration| {
            let path = path(folder.path(), app, &archive(n).1, FolderKind::CloudCode);
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(now() - age).unwrap();
        };
        for n in 0..=KEPT_OF_APP {
            let (bytes, sha256) = archive(n);
            let mut arrived = store.begin().unwrap();
            arrived.write_all(&bytes).unwrap();
            store.keep(Tenant::Service, app, &sha256, arrived).await.unwrap();
            // The first is the oldest.
            of_age(n, KEPT_FOR / 2 - Duration::from_secs(60 * n as u64));
        }
        let is_here = async |n: usize| store.renew(app, &archive(n).1).await.unwrap();
        assert_eq!(is_here(0).await, None);
        assert_eq!(is_here(1).await, Some(FolderKind::CloudCode));
        for n in 1..4 {
            of_age(n, KEPT_FOR + Duration::from_secs(60));
        }
        // A use counts.
        assert!(is_here(3).await.is_some());
        assert_eq!(store.forget().await.unwrap(), 2);
        let mut left = Vec::new();
        for n in 0..=KEPT_OF_APP {
            left.extend(is_here(n).await.map(|_| n));
        }
        assert_eq!(left, (3..=KEPT_OF_APP).collect::<Vec<_>>());
    }
}
