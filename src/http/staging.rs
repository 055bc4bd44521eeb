//! Writes the bytes of uploads to the disk.
//!
//! A lock on the staged file admits one writer at a time. Bytes are appended, made durable, and
//! only then counted in the record; a broken connection keeps the durable bytes. A bounded queue
//! between the connection and the writing thread keeps memory independent of the file's size.
//!
//! Where nodes share uploads, the file is a scratch file of the request. Bytes are durable once they are in a
//! segment of the bucket, and the record admits one writer at a time.

use super::Edge;
use crate::adapters::binaries::SEGMENT;
use actix_web::web;
use actors::{
    kinds::delivery::artifacts::{Artifacts, Command, Received, SharedBytes, StoredArtifact},
    kinds::people::tenant::tenant,
    ports::{
        binaries::Segment,
        machine::{Growing, Machine},
    },
    runtime::{clock::Clock, turns::Tenant},
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
/// A staged file is synced after this many bytes, so that a crash loses little.
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

/// The file for the bytes of a request: the staged file, locked, or a scratch file.
pub(super) async fn open(edge: &Edge, id: ArtifactId) -> Result<File, Fault> {
    if edge.vault.is_shared() {
        let vault = edge.vault.clone();
        return on_disk(move || vault.unnamed()).await?.map_err(|e| disk(&e));
    }
    lock(edge.vault.staged_path(id), &edge.platform.world.ports.clock).await
}

/// Opens the staged file and locks it.
async fn lock(path: PathBuf, clock: &Clock) -> Result<File, Fault> {
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
    edge: &'a Edge,
    id: ArtifactId,
    /// The final length of the file, if known.
    length: Option<u64>,
    /// Whose turn it is to send segments, where nodes share uploads.
    tenant: Option<Tenant>,
}

/// Where the bytes of a request are until they are in segments.
struct Scratch {
    tenant: Tenant,
    file: File,
}

/// The state of an upload after a request.
pub(super) struct StagedUpload {
    pub(super) offset: u64,
    pub(super) length: Option<u64>,
    /// Why the request did not store all its bytes.
    pub(super) problem: Option<Fault>,
}

impl<'a> Writer<'a> {
    /// A writer of this upload, whose final length is known or not.
    pub(super) fn new(
        edge: &'a Edge,
        id: ArtifactId,
        upload: &StoredArtifact,
        length: Option<u64>,
    ) -> Result<Self, Fault> {
        let app = upload.artifact.app_id;
        let tenant = edge.vault.is_shared().then(|| tenant(&edge.platform.world.store, app));
        Ok(Writer { edge, id, length, tenant: tenant.transpose()? })
    }

    /// Lets the record forget the bytes from this offset on, because the upload goes on there. After a crash, new
    /// bytes must not count as old ones.
    pub(super) async fn go_back(&self, upload: &StoredArtifact, offset: u64) -> Result<(), Fault> {
        let staged = &upload.staged;
        let shared = SharedBytes { after: staged.offset, segment: None };
        let shared = self.tenant.map(|_| shared);
        self.tell(&mut 0, Received { offset, length: self.length, shared }).await?;
        let kept = staged.segments.partition_point(|segment| segment.end <= offset);
        self.edge
            .vault
            .remove_segments(self.id, staged.segments.get(kept..).unwrap_or_default())
            .await;
        Ok(())
    }

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
        let scratch = match self.tenant {
            Some(tenant) => Some(Scratch { tenant, file: file.try_clone().map_err(|e| disk(&e))? }),
            None => None,
        };
        let (scratch, synced) = (scratch.as_ref(), scratch.is_none());
        let disk_side = tokio::task::spawn_blocking(move || {
            let every = if synced { DURABLE_EVERY } else { SEGMENT };
            let reports = Reports { durable, every, synced, hashed: digest.is_some() };
            append(file, (start, most), queue, &reports, &*machine)
        });
        let mut counted = start;
        let counts = async {
            while let Some(offset) = progress.recv().await {
                let counted = self.count_on_the_way(scratch, &mut counted, offset).await;
                // After another refusal, a later count covers the same bytes.
                if let Err(refused) = counted
                    && is_for_good(&refused)
                {
                    progress.close();
                    return Some(refused);
                }
            }
            None
        };
        let sends = send(payload, chunks, most.saturating_sub(start));
        let (sent, refused) = futures_util::future::join(sends, counts).await;
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
        match self.count(scratch, &mut counted, offset, length).await {
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

    /// Like [`count`](Writer::count), while more bytes come: of segments, only full ones are made.
    async fn count_on_the_way(
        &self,
        scratch: Option<&Scratch>,
        counted: &mut u64,
        offset: u64,
    ) -> Result<(), Fault> {
        let full = match scratch {
            Some(_) => *counted + (offset - *counted) / SEGMENT * SEGMENT,
            None => offset,
        };
        self.count(scratch, counted, full, self.length).await
    }

    /// Records that the bytes up to this offset are durable. `counted` says how many of them the record has.
    async fn count(
        &self,
        scratch: Option<&Scratch>,
        counted: &mut u64,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(), Fault> {
        let Some(scratch) = scratch else {
            return self.tell(counted, Received { offset, length, shared: None }).await;
        };
        while offset - *counted > SEGMENT {
            let end = *counted + SEGMENT;
            self.add(scratch, counted, end, self.length).await?;
        }
        self.add(scratch, counted, offset, length).await
    }

    /// Writes the bytes up to this offset as a segment, and counts them.
    async fn add(
        &self,
        scratch: &Scratch,
        counted: &mut u64,
        end: u64,
        length: Option<u64>,
    ) -> Result<(), Fault> {
        let after = *counted;
        let segment = match end > after {
            true => Some(self.share(scratch, after, end).await?),
            false => None,
        };
        let shared = Some(SharedBytes { after, segment: segment.clone() });
        let told = self.tell(counted, Received { offset: end, length, shared }).await;
        if let (Err(fault), Some(segment)) = (&told, segment)
            && *fault != Fault::Uncertain
        {
            self.edge.vault.remove_segments(self.id, &[segment]).await;
        }
        told
    }

    async fn share(&self, scratch: &Scratch, start: u64, end: u64) -> Result<Segment, Fault> {
        let file = scratch.file.try_clone().map_err(|e| disk(&e))?;
        let shared = self.edge.vault.share(scratch.tenant, self.id, file, start..end).await;
        shared.map_err(|e| {
            tracing::error!(id = %self.id, error = %e, "bytes of an upload cannot be stored");
            Fault::Unavailable("the artifact store")
        })
    }

    async fn tell(&self, counted: &mut u64, received: Received) -> Result<(), Fault> {
        let offset = received.offset;
        let artifact = self.edge.platform.world.to::<Artifacts>(self.id);
        let told = artifact.ask(Command::Received(received)).await;
        if matches!(told, Ok(_) | Err(Fault::Uncertain)) {
            // If it is uncertain, it may have been written.
            *counted = offset;
        }
        told.map(|_| ())
    }
}

/// Whether the bytes that follow will be refused too.
fn is_for_good(refused: &Fault) -> bool {
    matches!(refused, Fault::OverQuota(_) | Fault::WrongOffset { .. } | Fault::NotNow(_))
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

/// What [`append`] reports on its way.
struct Reports {
    /// How far the file is.
    durable: mpsc::Sender<u64>,
    /// The bytes between two reports.
    every: u64,
    /// Whether the bytes are on the disk before they are reported.
    synced: bool,
    /// Whether the bytes are hashed. They may have to be dropped then, so nothing is reported.
    hashed: bool,
}

/// Writes bytes from the queue to the file. Returns the last offset. Ends with
/// [`io::ErrorKind::StorageFull`] when the disk is nearly full.
fn append(
    mut file: File,
    (start, most): (u64, u64),
    mut queue: mpsc::Receiver<Bytes>,
    reports: &Reports,
    machine: &dyn Machine,
) -> io::Result<Appended> {
    let (mut offset, mut reported) = (start, start);
    let mut growing = Growing::from(start);
    let mut hasher = reports.hashed.then(Sha256::new);
    while let Some(chunk) = queue.blocking_recv() {
        file.write_all(&chunk)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk);
        }
        offset += chunk.len() as u64;
        growing.check(offset, machine)?;
        if !reports.hashed && offset < most && offset - reported >= reports.every {
            if reports.synced {
                file.sync_data()?;
            }
            reported = offset;
            if reports.durable.blocking_send(offset).is_err() {
                // Nobody counts further bytes.
                break;
            }
        }
    }
    if reports.synced {
        file.sync_all()?;
    }
    Ok((file, offset, hasher.map(|hasher| hasher.finalize().into())))
}
