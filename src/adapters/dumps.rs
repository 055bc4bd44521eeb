//! The bytes of backups: gzip files in a folder of the data directory.
//!
//! A dump is written to a partial file, synced, and renamed only once it is complete. So a file
//! with a backup's name is a complete backup.

use super::machine::ThisMachine;
use actors::{
    kinds::hosting::instances::database::TAIL,
    ports::{
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
    StreamExt, stream,
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

pub struct DumpFolder {
    folder: PathBuf,
    machine: ThisMachine,
}

/// The maximum number of pieces in the queue between reader and writer.
const WAITING: usize = 16;
const PIECE: usize = 64 << 10;

impl DumpFolder {
    /// Opens the folder, or creates it.
    pub fn open(folder: PathBuf) -> io::Result<DumpFolder> {
        std::fs::create_dir_all(&folder)?;
        let machine = ThisMachine { data: folder.clone() };
        Ok(DumpFolder { folder, machine })
    }

    /// The file of a backup.
    pub fn path(&self, id: BackupId) -> PathBuf {
        self.folder.join(format!("{id}.gz"))
    }

    /// The bytes of a backup's file in this range.
    pub async fn part(
        &self,
        id: BackupId,
        range: Range<u64>,
    ) -> io::Result<LocalBoxStream<'static, io::Result<Bytes>>> {
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
        self.folder.join(format!("{id}.partial"))
    }
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
            self.discard(id).await?;
        }
        done
    }

    async fn keep(&self, id: BackupId) -> Result<(), DumpError> {
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
        let (path, expected) = (self.path(id), sha256.clone());
        let file = blocking(move || {
            let mut file = File::open(&path).map_err(disk)?;
            let found = super::binaries::hash(&mut file).map_err(disk)?.1;
            if found != expected {
                return Err(DumpError::Disk(format!(
                    "the file is damaged: it should hash to {expected}, but hashes to {found}"
                )));
            }
            File::open(&path).map_err(disk)
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
        let paths = [self.partial(id), self.path(id)];
        let remove = |path: &PathBuf| match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(disk(e)),
            _ => Ok(()),
        };
        blocking(move || paths.iter().try_for_each(remove)).await
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
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dump_is_there_once_it_is_kept_and_read_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let dumps = DumpFolder::open(folder.path().into()).unwrap();
        let id: BackupId = "bak_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let pieces = |last: io::Result<Bytes>| {
            let whole = (0..100_u8).map(|n| Ok(Bytes::from(vec![n; 1000])));
            stream::iter(whole.chain([last]).collect::<Vec<_>>()).boxed()
        };
        let written =
            dumps.write(id, 1 << 20, pieces(Ok(Bytes::from_static(b"end")))).await.unwrap();
        assert!(!dumps.path(id).exists(), "not before it is kept");
        assert!(written.tail.ends_with(b"end") && written.head.starts_with(&[0, 0]));
        dumps.keep(id).await.unwrap();
        dumps.keep(id).await.unwrap();
        let read = dumps.read(id, &written.sha256).await.unwrap();
        let read: Vec<Bytes> = read.map(Result::unwrap).collect().await;
        assert_eq!(read.concat().len(), 100_003);
        let bytes = std::fs::read(dumps.path(id)).unwrap();
        std::fs::write(dumps.path(id), &bytes[..bytes.len() - 1]).unwrap();
        let damaged = dumps.read(id, &written.sha256).await.err().unwrap();
        assert!(damaged.to_string().contains("damaged"), "{damaged}");
        dumps.discard(id).await.unwrap();

        let broken = dumps.write(id, 1 << 20, pieces(Err(io::Error::other("it was killed")))).await;
        assert_eq!(broken, Err(DumpError::Source("it was killed".into())));
        let large = dumps.write(id, 100, pieces(Ok(Bytes::new()))).await;
        assert_eq!(large, Err(DumpError::TooLarge));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}
