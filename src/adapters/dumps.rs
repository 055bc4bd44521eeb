//! The bytes of backups: gzip files in a folder of the data directory, or objects of a bucket that nodes share.
//!
//! A dump is written to a partial file and synced. Only once it is complete, it is renamed, or sent to the
//! bucket. So a file with a backup's name is a complete backup.

use super::{
    machine::ThisMachine,
    objects::Objects,
    scratch::{self, WorkingCopy},
};
use actors::{
    kinds::hosting::instances::database::TAIL,
    ports::{
        PortError,
        dumps::{DumpError, Dumps, Written},
        machine::Growing,
    },
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{BackupId, Sha256};
use data_encoding::HEXLOWER;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use futures_util::{
    StreamExt, TryStreamExt, stream,
    stream::{BoxStream, LocalBoxStream},
};
use sha2::Digest;
use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    ops::Range,
    path::PathBuf,
};
use tokio::{
    io::{AsyncReadExt, AsyncSeekExt},
    sync::mpsc,
};

/// The dumps of a service.
pub struct DumpFolder {
    folder: PathBuf,
    /// Where complete dumps are, if nodes share them.
    shared: Option<Objects>,
    machine: ThisMachine,
}

/// The ending of partial files, and the folder of those of dumps that nodes share.
const PARTIAL: &str = "partial";

/// The maximum number of pieces in the queue between reader and writer.
const WAITING: usize = 16;
const PIECE: usize = 64 << 10;

impl DumpFolder {
    /// Opens the folder, or creates it. Alone, the process writes over what a crash has left; where nodes share
    /// the dumps, another one may have gone on, so it is removed.
    pub fn open(folder: PathBuf, shared: Option<Objects>) -> io::Result<DumpFolder> {
        std::fs::create_dir_all(&folder)?;
        if shared.is_some() {
            scratch::empty(&folder.join(PARTIAL))?;
        }
        let machine = ThisMachine { data: folder.clone() };
        Ok(DumpFolder { folder, shared, machine })
    }

    /// The file of a backup.
    pub fn path(&self, id: BackupId) -> PathBuf {
        self.folder.join(format!("{id}.gz"))
    }

    /// The bytes of a backup's file in this range.
    pub async fn part(
        &self,
        id: BackupId,
        sha256: &Sha256,
        range: Range<u64>,
    ) -> io::Result<LocalBoxStream<'static, io::Result<Bytes>>> {
        if let Some(shared) = &self.shared {
            let bytes = shared.read(&object(id, sha256), range).await.map_err(io::Error::other)?;
            return Ok(bytes.map_err(io::Error::other).boxed_local());
        }
        let mut file = tokio::fs::File::open(self.path(id)).await?;
        file.seek(io::SeekFrom::Start(range.start)).await?;
        let left = range.end.saturating_sub(range.start);
        let next = |(mut file, left): (tokio::fs::File, u64)| async move {
            if left == 0 {
                return None;
            }
            let size = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let mut piece = vec![0; size];
            match file.read(&mut piece).await {
                Ok(0) => Some((Err(io::ErrorKind::UnexpectedEof.into()), (file, 0))),
                Ok(read) => {
                    piece.truncate(read);
                    Some((Ok(piece.into()), (file, left - read as u64)))
                }
                Err(e) => Some((Err(e), (file, 0))),
            }
        };
        Ok(stream::unfold((file, left), next).boxed_local())
    }

    fn partial(&self, id: BackupId) -> PathBuf {
        match &self.shared {
            Some(_) => self.folder.join(PARTIAL).join(id.to_string()),
            None => self.folder.join(format!("{id}.{PARTIAL}")),
        }
    }

    /// Removes what of a dump is on this disk.
    async fn discard_here(&self, id: BackupId) -> Result<(), DumpError> {
        let paths = [self.partial(id), self.path(id)];
        let remove = |path: &PathBuf| match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(disk(e)),
            _ => Ok(()),
        };
        blocking(move || paths.iter().try_for_each(remove)).await
    }

    /// Sends the written dump to the bucket, unless that was done before.
    async fn send(&self, id: BackupId, sha256: &Sha256, shared: &Objects) -> Result<(), DumpError> {
        let (partial, name) = (self.partial(id), object(id, sha256));
        let file = match File::open(&partial) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match shared.has(&name).await.map_err(bucket)? {
                    true => Ok(()),
                    false => Err(disk(e)),
                };
            }
            file => file.map_err(disk)?,
        };
        let size = file.metadata().map_err(disk)?.len();
        shared.send(&name, file, 0..size).await.map_err(bucket)?;
        std::fs::remove_file(&partial).map_err(disk)
    }

    /// The complete file of a dump.
    async fn file(&self, id: BackupId, sha256: &Sha256) -> Result<File, DumpError> {
        let Some(shared) = &self.shared else {
            let path = self.path(id);
            return blocking(move || File::open(path).map_err(disk)).await;
        };
        let mut file =
            tokio::fs::File::from_std(tempfile::tempfile_in(&self.folder).map_err(disk)?);
        shared.fetch(&object(id, sha256), &mut file, &self.machine).await.map_err(bucket)?;
        file.rewind().await.map_err(disk)?;
        Ok(file.into_std().await)
    }
}

/// The object of a dump. A node that is late does not overwrite what another one has dumped meanwhile.
fn object(id: BackupId, sha256: &Sha256) -> String {
    format!("{id}/{sha256}.gz")
}

fn bucket(e: PortError) -> DumpError {
    DumpError::Disk(e.to_string())
}

fn disk(e: io::Error) -> DumpError {
    DumpError::Disk(match e.kind() {
        io::ErrorKind::QuotaExceeded => return DumpError::TooLarge,
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::NotFound => "the file is not there".into(),
        _ => e.to_string(),
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DumpError> + Send + 'static,
) -> Result<T, DumpError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(DumpError::Disk(e.to_string())))
}

#[async_trait]
impl Dumps for DumpFolder {
    fn working_copy(&self, id: BackupId) -> Box<dyn Send> {
        match &self.shared {
            Some(_) => Box::new(WorkingCopy(self.partial(id))),
            None => Box::new(()),
        }
    }

    async fn write(
        &self,
        id: BackupId,
        most: u64,
        mut plain: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<Written, DumpError> {
        let partial = self.partial(id);
        let (pieces, incoming) = mpsc::channel(WAITING);
        let (path, machine) = (partial.clone(), self.machine.clone());
        let room = Room { most, growing: Growing::from(0), machine };
        let writing = tokio::spawn(blocking(move || write(&path, room, incoming).map_err(disk)));
        let mut failed = None;
        while let Some(piece) = plain.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(e) => {
                    failed = Some(DumpError::Source(e.to_string()));
                    break;
                }
            };
            if pieces.send(piece).await.is_err() {
                // The writer has failed; its result says why.
                break;
            }
        }
        drop(pieces);
        let written = writing.await.unwrap_or_else(|e| Err(DumpError::Disk(e.to_string())));
        let done = match failed {
            Some(failed) => Err(failed),
            None => written,
        };
        if done.is_err() {
            self.discard_here(id).await?;
        }
        done
    }

    async fn keep(&self, id: BackupId, sha256: &Sha256) -> Result<(), DumpError> {
        if let Some(shared) = &self.shared {
            return self.send(id, sha256, shared).await;
        }
        let (from, to, folder) = (self.partial(id), self.path(id), self.folder.clone());
        let keep = move || match std::fs::rename(&from, &to) {
            Ok(()) => File::open(&folder)?.sync_all(),
            Err(e) if e.kind() == io::ErrorKind::NotFound && to.exists() => Ok(()),
            Err(e) => Err(e),
        };
        blocking(move || keep().map_err(disk)).await
    }

    async fn read(
        &self,
        id: BackupId,
        sha256: &Sha256,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, DumpError> {
        let (mut file, expected) = (self.file(id, sha256).await?, sha256.clone());
        let file = blocking(move || {
            let found = super::binaries::hash(&mut file).map_err(disk)?.1;
            if found != expected {
                return Err(DumpError::Disk(format!(
                    "the file is damaged: it should hash to {expected}, but hashes to {found}"
                )));
            }
            io::Seek::rewind(&mut file).map_err(disk)?;
            Ok(file)
        });
        let (pieces, outgoing) = mpsc::channel(WAITING);
        let file = file.await?;
        tokio::task::spawn_blocking(move || read(file, &pieces));
        Ok(stream::unfold(outgoing, |mut outgoing| async move {
            outgoing.recv().await.map(|piece| (piece, outgoing))
        })
        .boxed())
    }

    async fn discard(&self, id: BackupId) -> Result<(), DumpError> {
        self.discard_here(id).await?;
        match &self.shared {
            Some(shared) => shared.remove_all(&id.to_string()).await.map_err(bucket),
            None => Ok(()),
        }
    }
}

/// Compresses the pieces into a file and hashes the compressed bytes.
fn write(path: &PathBuf, room: Room, mut incoming: mpsc::Receiver<Bytes>) -> io::Result<Written> {
    // An earlier writer may still be writing: it keeps the removed file.
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = File::create_new(path)?;
    let hashing = Hashing { file, hash: sha2::Sha256::new(), size: 0, room };
    let mut gzip = GzEncoder::new(hashing, Compression::default());
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    while let Some(piece) = incoming.blocking_recv() {
        gzip.write_all(&piece)?;
        head.extend(piece.iter().take(TAIL - head.len()));
        tail.extend_from_slice(piece.get(piece.len().saturating_sub(TAIL)..).unwrap_or_default());
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
    let Hashing { file, hash, size, .. } = gzip.finish()?;
    file.sync_all()?;
    let sha256 = HEXLOWER.encode(&hash.finalize()).parse().map_err(io::Error::other)?;
    Ok(Written { size, sha256, head, tail })
}

struct Hashing {
    file: File,
    hash: sha2::Sha256,
    size: u64,
    room: Room,
}

/// How far a file may grow.
struct Room {
    most: u64,
    growing: Growing,
    machine: ThisMachine,
}

impl Room {
    /// Refuses a file of this size ([`io::ErrorKind::QuotaExceeded`]), or one on a disk that is nearly full
    /// ([`io::ErrorKind::StorageFull`]).
    fn check(&mut self, size: u64) -> io::Result<()> {
        if size > self.most {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.growing.check(size, &self.machine)
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room.check(self.size + bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Decompresses a file and sends the pieces, until the end or until the receiver is gone.
fn read(file: File, pieces: &mpsc::Sender<io::Result<Bytes>>) {
    let mut plain = GzDecoder::new(BufReader::new(file));
    loop {
        let mut piece = vec![0; PIECE];
        let read = match plain.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => read,
            Err(e) => {
                let _ = pieces.blocking_send(Err(e));
                return;
            }
        };
        piece.truncate(read);
        if pieces.blocking_send(Ok(piece.into())).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
