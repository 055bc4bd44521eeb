//! Writes the bytes of uploads to the disk.
//!
//! A lock on the staged file admits one writer at a time. Bytes are appended, made durable, and
//! only then counted in the record; a broken connection keeps the durable bytes. A bounded queue
//! between the connection and the writing thread keeps memory independent of the file's size.

use super::Edge;
use actix_web::web;
use actors::{
    kinds::delivery::artifacts::{Artifacts, Command},
    ports::machine::{Growing, Machine},
    runtime::clock::Clock,
};
use bytes::Bytes;
use contract::{ArtifactId, Fault};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use std::{
    fs::{File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Chunks between the connection and the disk. A chunk has at most 64 KiB: the bytes of one read.
const QUEUE: usize = 32;
/// The file is synced after this many bytes, so that a crash loses little.
const DURABLE_EVERY: u64 = 64 << 20;
/// The server gives up a connection that sends nothing for this long.
const STALLED_AFTER: Duration = Duration::from_secs(60);
/// The server also gives up a connection that is slower than this, in bytes per second, once it has
/// lasted `STALLED_AFTER`. The durable bytes stay, and the client can send the rest later.
const SLOWEST: u64 = 16 << 10;

pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Fault::Uncertain)
}

pub(super) fn disk(e: &io::Error) -> Fault {
    if e.kind() == io::ErrorKind::StorageFull {
        return Fault::NoRoom;
    }
    tracing::error!(error = %e, "bytes of an upload cannot be stored");
    Fault::Unavailable("the upload's disk")
}

/// How often a writer tries to get the lock, and the pause between. A writer whose bytes are counted, which
/// whoever asks sees, has the lock a moment longer.
const TRIES: usize = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Opens the staged file and locks it.
pub(super) async fn lock(path: PathBuf, clock: &Clock) -> Result<File, Fault> {
    let mut tries = TRIES;
    loop {
        let path = path.clone();
        let file = on_disk(move || try_lock(&path)).await?;
        tries -= 1;
        if tries == 0 || !matches!(file, Err(Fault::NotNow(_))) {
            return file;
        }
        clock.sleep(BETWEEN_TRIES).await;
    }
}

fn try_lock(path: &Path) -> Result<File, Fault> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| disk(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Fault::NotNow(
            "somebody else is sending bytes of this upload; wait, then ask how far it is".into(),
        )),
        Err(TryLockError::Error(e)) => Err(disk(&e)),
    }
}

/// Truncates the file at the offset and seeks there.
pub(super) fn cut(mut file: File, offset: u64) -> io::Result<File> {
    file.set_len(offset)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

/// Writes the bytes of one request.
pub(super) struct Writer<'a> {
    pub(super) edge: &'a Edge,
    pub(super) id: ArtifactId,
    /// The final length of the file, if known.
    pub(super) length: Option<u64>,
}

/// The state of an upload after a request.
pub(super) struct StagedUpload {
    pub(super) offset: u64,
    pub(super) length: Option<u64>,
    /// Why the request did not store all its bytes.
    pub(super) problem: Option<Fault>,
}

impl Writer<'_> {
    /// Writes the bytes to the disk, and counts durable bytes in the record.
    pub(super) async fn write(
        &self,
        file: File,
        payload: web::Payload,
        start: u64,
        most: u64,
        digest: Option<[u8; 32]>,
    ) -> Result<StagedUpload, Fault> {
        let (chunks, queue) = mpsc::channel::<Bytes>(QUEUE);
        let (durable, mut progress) = mpsc::channel::<u64>(4);
        let machine = self.edge.platform.world.ports.machine.clone();
        let disk_side = tokio::task::spawn_blocking(move || {
            append(file, (start, most), queue, &durable, digest.is_some(), &*machine)
        });
        let counts = async {
            let mut counted = start;
            while let Some(offset) = progress.recv().await {
                match self.count(offset, self.length).await {
                    Ok(()) => counted = offset,
                    Err(refused @ Fault::OverQuota(_)) => {
                        progress.close();
                        return (counted, Some(refused));
                    }
                    // It may have been written.
                    Err(Fault::Uncertain) => counted = offset,
                    // A later count covers the same bytes.
                    Err(_) => {}
                }
            }
            (counted, None)
        };
        let sends = send(payload, chunks, most.saturating_sub(start));
        let (sent, (counted, refused)) = futures_util::future::join(sends, counts).await;
        let appended = disk_side.await.map_err(|_| Fault::Uncertain)?;
        let (mut file, mut offset, hash) = appended.map_err(|e| disk(&e))?;
        if let Some(refused) = refused {
            on_disk(move || cut(file, counted)).await?.map_err(|e| disk(&e))?;
            return Err(refused);
        }
        let mut problem = sent.err();
        if problem.is_none() && digest.is_some_and(|expected| hash != Some(expected)) {
            problem = Some(Fault::invalid(
                "Content-Digest",
                "does not fit the bytes that arrived; the part was dropped, send it again",
            ));
            file = on_disk(move || cut(file, start)).await?.map_err(|e| disk(&e))?;
            offset = start;
        }
        // Without a declared length, the end of the request is the end of the file.
        let whole = problem.is_none()
            && self.length.is_none()
            && most == self.edge.platform.settings.largest_artifact;
        let length = if whole { Some(offset) } else { self.length };
        // The writer keeps the lock until the record has the offset.
        match self.count(offset, length).await {
            // What no quota counts must not stay.
            Err(refused @ Fault::OverQuota(_)) => {
                on_disk(move || cut(file, counted)).await?.map_err(|e| disk(&e))?;
                return Err(refused);
            }
            counted => counted?,
        }
        drop(file);
        Ok(StagedUpload { offset, length, problem })
    }

    /// Records how many bytes are durable.
    pub(super) async fn count(&self, offset: u64, length: Option<u64>) -> Result<(), Fault> {
        self.edge
            .platform
            .world
            .to::<Artifacts>(self.id)
            .ask(Command::Received(offset, length))
            .await
            .map(|_| ())
    }
}

/// Moves bytes from the connection into the queue.
pub(super) async fn send(
    mut payload: web::Payload,
    chunks: mpsc::Sender<Bytes>,
    most: u64,
) -> Result<(), Fault> {
    let (begun, mut sent) = (Instant::now(), 0);
    loop {
        let next = tokio::time::timeout(STALLED_AFTER, payload.next()).await;
        if begun.elapsed() > STALLED_AFTER + Duration::from_secs(sent / SLOWEST) {
            return Err(Fault::RequestTimeout);
        }
        let chunk = match next.map_err(|_| Fault::RequestTimeout)? {
            None => return Ok(()),
            Some(chunk) => chunk.map_err(|e| {
                Fault::Malformed(format!(
                    "the connection broke: {e}; ask how far the upload is and go on there"
                ))
            })?,
        };
        sent += chunk.len() as u64;
        if sent > most {
            return Err(Fault::TooLarge { limit: most });
        }
        if chunks.send(chunk).await.is_err() {
            return Err(Fault::Unavailable("the upload's disk"));
        }
    }
}

type Appended = (File, u64, Option<[u8; 32]>);

/// Writes bytes from the queue to the file. Reports durable offsets on the way and returns the last
/// one. With a digest to compare, it reports none: the bytes may have to be dropped. Ends with
/// [`io::ErrorKind::StorageFull`] when the disk is nearly full.
fn append(
    mut file: File,
    (start, most): (u64, u64),
    mut queue: mpsc::Receiver<Bytes>,
    durable: &mpsc::Sender<u64>,
    hashed: bool,
    machine: &dyn Machine,
) -> io::Result<Appended> {
    let (mut offset, mut reported) = (start, start);
    let mut growing = Growing::from(start);
    let mut hasher = hashed.then(Sha256::new);
    while let Some(chunk) = queue.blocking_recv() {
        file.write_all(&chunk)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk);
        }
        offset += chunk.len() as u64;
        growing.check(offset, machine)?;
        if !hashed && offset < most && offset - reported >= DURABLE_EVERY {
            file.sync_data()?;
            reported = offset;
            if durable.blocking_send(offset).is_err() {
                // Nobody counts further bytes.
                break;
            }
        }
    }
    file.sync_all()?;
    Ok((file, offset, hasher.map(|hasher| hasher.finalize().into())))
}
