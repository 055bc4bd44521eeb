//! The archives of folders, which deployments build: files of the data directory, by app and hash.
//!
//! An archive is written to a temporary file, checked, synced, and renamed. So a file with the name of
//! an archive is a whole and checked one. How its folder is built is part of the name.

use super::archive::{self, ArchiveError};
use actors::ports::{
    PortError,
    folders::{Folders, KEPT_FOR, KEPT_OF_APP},
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{AppId, Sha256};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use repository::folder::FolderKind;
use std::{
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

pub struct FolderStore(PathBuf);

impl FolderStore {
    /// Opens the folder, or creates it. What a crash left unfinished is removed.
    pub fn open(folder: PathBuf) -> io::Result<FolderStore> {
        let partial = folder.join(PARTIAL);
        match fs::remove_dir_all(&partial) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        fs::create_dir_all(&partial)?;
        Ok(FolderStore(folder))
    }

    /// A file for an archive that arrives. It is removed when it is dropped.
    pub fn begin(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(self.0.join(PARTIAL))
    }

    /// Checks an archive that has arrived, and stores it durably. Then removes the oldest of the app
    /// beyond [`KEPT_OF_APP`].
    pub fn keep(
        &self,
        app: AppId,
        sha256: &Sha256,
        mut arrived: NamedTempFile,
    ) -> Result<(), ArchiveError> {
        let file = arrived.as_file_mut();
        let size = file.stream_position().map_err(ArchiveError::Io)?;
        file.rewind().map_err(ArchiveError::Io)?;
        let kind = archive::check(BufReader::new(&*file), size)?;
        self.place(app, sha256, kind, arrived).map_err(ArchiveError::Io)
    }

    fn place(
        &self,
        app: AppId,
        sha256: &Sha256,
        kind: FolderKind,
        arrived: NamedTempFile,
    ) -> io::Result<()> {
        let path = self.path(app, sha256, kind);
        let folder = self.0.join(app.to_string());
        fs::create_dir_all(&folder)?;
        arrived.as_file().sync_all()?;
        arrived.persist(&path).map_err(|e| e.error)?;
        File::open(&folder)?.sync_all()?;
        File::open(&self.0)?.sync_all()?;
        let mut others = files(&folder)?;
        others.retain(|(_, other)| *other != path);
        others.sort();
        let surplus = others.len().saturating_sub(KEPT_OF_APP - 1);
        others.iter().take(surplus).try_for_each(|(_, path)| remove(path))
    }

    fn path(&self, app: AppId, sha256: &Sha256, kind: FolderKind) -> PathBuf {
        let kind = match kind {
            FolderKind::Dockerfile => "dockerfile",
            FolderKind::CloudCode => "cloud",
            FolderKind::CloudCodeWithPackages => "cloud-npm",
        };
        self.0.join(app.to_string()).join(format!("{sha256}.{kind}"))
    }
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
        let paths = FolderKind::ALL.map(|kind| (kind, self.path(app, sha256, kind)));
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
        let path = self.path(app, sha256, kind);
        let (file, size) = blocking(move || {
            let file = File::open(path)?;
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
        let all = self.0.clone();
        blocking(move || {
            let mut gone = 0;
            for app in fs::read_dir(&all)? {
                for (used, path) in files(&app?.path())? {
                    let age = now().duration_since(used).unwrap_or_default();
                    if age > KEPT_FOR {
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
