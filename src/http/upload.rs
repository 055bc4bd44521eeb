//! The bytes of an upload: whole, or as parts with `Content-Range`.
//!
//! One writer at a time, by a lock on the staged file. Bytes are appended, made durable, and only
//! then counted in the record; a dropped connection keeps what is durable. Memory does not grow
//! with the file: a bounded queue lies between the connection and the thread that writes.

use super::{Edge, reply::Heading, request};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use actors::artifacts::{
    Command, Upload,
    address::{self, Use},
};
use base64::Engine;
use bytes::Bytes;
use contract::{ArtifactId, Fault, artifacts::ArtifactState, endpoint::Received};
use futures_util::StreamExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::{
    fs::{File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    time::Duration,
};
use tokio::sync::mpsc;

/// Chunks between the connection and the disk. A chunk is at most what one read gives, 64 KiB.
const QUEUE: usize = 32;
/// Bytes after which what came in is made durable, so that a broken connection loses little.
const DURABLE_EVERY: u64 = 64 << 20;
/// A connection that sends nothing for this long is given up.
const STALLED_AFTER: Duration = Duration::from_secs(60);

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
const COMPLETE: HeaderName = HeaderName::from_static("upload-complete");

/// The query of a signed address.
#[derive(Deserialize)]
pub(super) struct Signed {
    expires: i64,
    signature: String,
}

/// The artifact of a signed address, where the address is genuine and holds.
pub(super) fn open(
    req: &HttpRequest,
    edge: &Edge,
    used: Use,
) -> Result<(ArtifactId, Upload), Fault> {
    let platform = &edge.platform;
    let id = req.match_info().get("id").and_then(|id| id.parse::<ArtifactId>().ok());
    let id = id.ok_or(Fault::NotFound("artifact"))?;
    let signed = web::Query::<Signed>::from_query(req.query_string());
    let signed = signed.map_err(|_| {
        Fault::Unauthenticated(
            "this address is not whole: expires and signature are missing".into(),
        )
    })?;
    let now = platform.world.ports.clock.now();
    address::check(
        &platform.settings.signing_key,
        used,
        id,
        signed.expires,
        &signed.signature,
        now,
    )?;
    let upload = platform.upload(id)?.record.state.clone();
    if upload.artifact.state == ArtifactState::Deleted {
        return Err(Fault::NotFound("artifact"));
    }
    platform.reachable(upload.artifact.app_id)?;
    Ok((id, upload))
}

pub(super) async fn head(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    let request_id = request::request_id(req.head(), &edge);
    let heading =
        Heading { head: req.head(), edge: &edge, request_id: &request_id, allowance: None };
    let found = async {
        let (id, upload) = open(&req, &edge, Use::Upload)?;
        let offset = match upload.artifact.state {
            ArtifactState::Pending => edge.platform.durable_offset(id, upload.offset).await?,
            _ => upload.offset,
        };
        Ok((offset, upload))
    };
    match found.await {
        Ok((offset, upload)) => {
            let mut answer = heading.json(StatusCode::OK, Vec::new());
            describe(&mut answer, offset, upload.length);
            answer
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            answer
        }
        Err(fault) => heading.fault(&fault),
    }
}

/// Says how far an upload is (as the resumable uploads draft of the IETF names it).
fn describe(answer: &mut HttpResponse, offset: u64, length: Option<u64>) {
    let headers = answer.headers_mut();
    headers.insert(OFFSET, offset.into());
    if let Some(length) = length {
        headers.insert(LENGTH, length.into());
    }
    let complete = length == Some(offset);
    headers.insert(COMPLETE, HeaderValue::from_static(if complete { "?1" } else { "?0" }));
}

pub(super) async fn put(
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    let request_id = request::request_id(req.head(), &edge);
    let heading =
        Heading { head: req.head(), edge: &edge, request_id: &request_id, allowance: None };
    match receive(&req, &edge, payload).await {
        Ok((artifact_id, offset, length)) => {
            let status = if length == Some(offset) { StatusCode::OK } else { StatusCode::ACCEPTED };
            let mut answer = heading.value(status, &Received { artifact_id, received: offset });
            describe(&mut answer, offset, length);
            answer
        }
        Err(fault) => {
            tracing::info!(%request_id, function = "putArtifactContent", code = fault.code(), error = %fault, "refused");
            let mut answer = heading.fault(&fault);
            // What is left of the body is not read: the connection cannot be used again.
            answer.head_mut().set_connection_type(actix_http::ConnectionType::Close);
            answer
        }
    }
}

/// Where the bytes of a request belong.
struct Part {
    start: u64,
    /// One past the last byte, where the request says it.
    end: Option<u64>,
    /// The length of the whole file, where it is known.
    total: Option<u64>,
    /// What the bytes of this request must hash to.
    digest: Option<[u8; 32]>,
}

async fn receive(
    req: &HttpRequest,
    edge: &Edge,
    payload: web::Payload,
) -> Result<(ArtifactId, u64, Option<u64>), Fault> {
    let (id, upload) = open(req, edge, Use::Upload)?;
    check_open(&upload)?;
    let part = read_part(req, &upload)?;
    let limit = edge.platform.settings.largest_artifact;
    let last = part.total.or(part.end).unwrap_or(0);
    if last > limit {
        return Err(Fault::TooLarge { limit });
    }
    let _place = edge.shared.uploads.try_acquire().map_err(|_| Fault::Busy)?;
    let path = edge.vault.staged_path(id);
    let mut staged = on_disk(move || lock(&path)).await??;
    // Read again under the lock: another writer may have been at work, or the bytes may be under
    // verification by now.
    let upload = edge.platform.upload(id)?.record.state.clone();
    if let Err(fault) = check_open(&upload) {
        edge.vault.forget_stray(id, &staged);
        return Err(fault);
    }
    let durable = edge.platform.durable_offset(id, upload.offset).await?;
    if part.start != durable && part.start != 0 {
        let reason = format!(
            "this part starts at byte {}, but {durable} bytes are stored; go on there",
            part.start
        );
        return Err(Fault::WrongOffset { reason, offset: durable });
    }
    if part.start == 0 && durable > 0 && req.headers().contains_key(header::CONTENT_RANGE) {
        let reason =
            format!("this part starts at byte 0, but {durable} bytes are stored; go on there");
        return Err(Fault::WrongOffset { reason, offset: durable });
    }
    let length = part.total.or(upload.declared.size);
    let most = part.end.or(length).unwrap_or(limit);
    let writer = Writer { edge, id, length };
    if part.start < durable {
        // What was stored goes: after a crash nobody may take the new bytes for it.
        writer.count(part.start, length).await?;
    }
    staged = on_disk(move || cut(staged, part.start)).await?.map_err(|e| disk(&e))?;
    let stored = writer.write(staged, payload, part.start, most, part.digest).await?;
    edge.shared.figures.uploaded.inc_by(stored.offset.saturating_sub(part.start));
    stored.problem.map_or(Ok((id, stored.offset, stored.length)), Err)
}

/// Whether an upload waits for bytes.
fn check_open(upload: &Upload) -> Result<(), Fault> {
    if upload.artifact.state == ArtifactState::Pending && !upload.is_complete() {
        return Ok(());
    }
    Err(Fault::NotNow(format!(
        "this upload takes no more bytes: {}",
        if upload.is_complete() { "it is complete, finalize it" } else { "open a new one" }
    )))
}

/// `Content-Range: bytes a-b/total`, or the whole file. `Content-Digest` is of RFC 9530.
fn read_part(req: &HttpRequest, upload: &Upload) -> Result<Part, Fault> {
    let text = |name: &str| req.headers().get(name).and_then(|v| v.to_str().ok());
    let length: Option<u64> = text("content-length").and_then(|n| n.parse().ok());
    let digest = text("content-digest").map(read_digest).transpose()?;
    let declared = upload.declared.size;
    let part = match text("content-range") {
        None => Part { start: 0, end: length, total: length, digest },
        Some(range) => {
            let bad = || Fault::invalid("Content-Range", "must be as in: bytes 0-8388607/12345678");
            let (bytes, total) =
                range.strip_prefix("bytes ").and_then(|r| r.split_once('/')).ok_or_else(bad)?;
            let (first, last) = bytes.split_once('-').ok_or_else(bad)?;
            let (first, last): (u64, u64) =
                (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
            let total =
                if total == "*" { None } else { Some(total.parse::<u64>().map_err(|_| bad())?) };
            let fits = last >= first
                && total.is_none_or(|total| last < total)
                && length.is_none_or(|n| n == last - first + 1);
            if !fits {
                return Err(bad());
            }
            Part { start: first, end: Some(last + 1), total, digest }
        }
    };
    match (declared, part.total) {
        (Some(declared), Some(total)) if declared != total => Err(Fault::invalid(
            "Content-Length",
            format!("the upload was opened for {declared} bytes, not {total}"),
        )),
        (Some(declared), _) if part.end.is_some_and(|end| end > declared) => Err(Fault::invalid(
            "Content-Range",
            format!("the upload was opened for {declared} bytes"),
        )),
        _ => Ok(part),
    }
}

fn read_digest(text: &str) -> Result<[u8; 32], Fault> {
    let bad = || {
        Fault::invalid(
            "Content-Digest",
            "must be as in: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
        )
    };
    let value = text
        .split(',')
        .find_map(|part| part.trim().strip_prefix("sha-256=:")?.strip_suffix(':'))
        .ok_or_else(bad)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value).map_err(|_| bad())?;
    bytes.try_into().map_err(|_| bad())
}

async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Fault::Uncertain)
}

fn disk(e: &io::Error) -> Fault {
    tracing::error!(error = %e, "bytes of an upload cannot be stored");
    Fault::Unavailable("the upload's disk")
}

/// The staged file, for one writer.
fn lock(path: &std::path::Path) -> Result<File, Fault> {
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

/// Drops what lies past the offset and goes on there.
fn cut(mut file: File, offset: u64) -> io::Result<File> {
    file.set_len(offset)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

struct Writer<'a> {
    edge: &'a Edge,
    id: ArtifactId,
    length: Option<u64>,
}

/// How far an upload came.
struct Stored {
    offset: u64,
    length: Option<u64>,
    /// Why it came no further.
    problem: Option<Fault>,
}

impl Writer<'_> {
    /// Moves the bytes to the disk, and counts them in the record when they are durable.
    async fn write(
        &self,
        file: File,
        payload: web::Payload,
        start: u64,
        most: u64,
        digest: Option<[u8; 32]>,
    ) -> Result<Stored, Fault> {
        let (chunks, queue) = mpsc::channel::<Bytes>(QUEUE);
        let (durable, mut progress) = mpsc::channel::<u64>(4);
        let disk_side = tokio::task::spawn_blocking(move || {
            append(file, start, most, queue, &durable, digest.is_some())
        });
        let (sent, ()) =
            futures_util::future::join(send(payload, chunks, most.saturating_sub(start)), async {
                while let Some(offset) = progress.recv().await {
                    // A later report repeats an earlier one that was lost.
                    let _ = self.count(offset, self.length).await;
                }
            })
            .await;
        let appended = disk_side.await.map_err(|_| Fault::Uncertain)?;
        let (mut file, mut offset, hash) = appended.map_err(|e| disk(&e))?;
        let mut problem = sent.err();
        if problem.is_none() && digest.is_some_and(|expected| hash != Some(expected)) {
            problem = Some(Fault::invalid(
                "Content-Digest",
                "does not fit the bytes that arrived; the part was dropped, send it again",
            ));
            file = on_disk(move || cut(file, start)).await?.map_err(|e| disk(&e))?;
            offset = start;
        }
        // A whole file without a declared length ends where the request ends.
        let whole = problem.is_none()
            && self.length.is_none()
            && most == self.edge.platform.settings.largest_artifact;
        let length = if whole { Some(offset) } else { self.length };
        // The lock is held until the record says how far it is.
        self.count(offset, length).await?;
        drop(file);
        Ok(Stored { offset, length, problem })
    }

    async fn count(&self, offset: u64, length: Option<u64>) -> Result<(), Fault> {
        let owners = &self.edge.platform.owners()?.artifacts;
        owners.ask(self.id, Command::Received(offset, length)).await.map(|_| ())
    }
}

/// From the connection into the queue.
async fn send(
    mut payload: web::Payload,
    chunks: mpsc::Sender<Bytes>,
    most: u64,
) -> Result<(), Fault> {
    let mut sent = 0;
    loop {
        let next = tokio::time::timeout(STALLED_AFTER, payload.next()).await;
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

/// From the queue onto the disk. Reports offsets that are durable on the way; the last one it
/// returns. Bytes whose digest is yet to be compared are not reported, nor is the end.
fn append(
    mut file: File,
    start: u64,
    most: u64,
    mut queue: mpsc::Receiver<Bytes>,
    durable: &mpsc::Sender<u64>,
    hashed: bool,
) -> io::Result<Appended> {
    let (mut offset, mut reported) = (start, start);
    let mut hasher = hashed.then(Sha256::new);
    while let Some(chunk) = queue.blocking_recv() {
        file.write_all(&chunk)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk);
        }
        offset += chunk.len() as u64;
        if !hashed && offset < most && offset - reported >= DURABLE_EVERY {
            file.sync_data()?;
            reported = offset;
            let _ = durable.blocking_send(offset);
        }
    }
    file.sync_all()?;
    Ok((file, offset, hasher.map(|hasher| hasher.finalize().into())))
}
