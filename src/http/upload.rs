//! Uploads of artifacts, whole or in parts with `Content-Range`.
//!
//! This module reads the request; `staging` writes the bytes.

use super::{
    Edge,
    reply::Heading,
    staging::{self, Writer, cut, disk, on_disk},
};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use actors::{
    call::{
        lookup::check_reachable,
        rate_limit::{Allowance, RateKey},
    },
    functions::delivery::artifacts::endpoints::{self, durable_offset},
    kinds::delivery::artifacts::{
        StoredArtifact,
        address::{self, Use},
    },
};
use contract::{ArtifactId, Fault, Id, artifacts::ArtifactState, endpoint::Received};
use data_encoding::BASE64;
use serde::Deserialize;

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
const COMPLETE: HeaderName = HeaderName::from_static("upload-complete");

#[derive(Deserialize)]
pub(super) struct Signed {
    pub(super) expires: i64,
    pub(super) signature: String,
}

impl Signed {
    /// Reads the query of a signed URL.
    pub(super) fn of(req: &HttpRequest) -> Result<Signed, Fault> {
        let signed = web::Query::<Signed>::from_query(req.query_string());
        signed.map(web::Query::into_inner).map_err(|_| {
            Fault::Unauthenticated(
                "this address is not whole: expires and signature are missing".into(),
            )
        })
    }
}

/// The id in a signed URL. Fails if the signature is wrong or has expired.
pub(super) fn signed<I: Id>(
    req: &HttpRequest,
    edge: &Edge,
    used: Use,
    noun: &'static str,
) -> Result<I, Fault> {
    let platform = &edge.platform;
    let id = req.match_info().iter().next().and_then(|(_, id)| id.parse::<I>().ok());
    let id = id.ok_or(Fault::NotFound(noun))?;
    let signed = Signed::of(req)?;
    let (key, now) = (&platform.settings.signing_key, platform.world.ports.clock.now());
    address::check(key, used, id, signed.expires, &signed.signature, now)?;
    Ok(id)
}

/// The artifact of a signed URL. Fails if the signature is wrong or has expired.
pub(super) fn open(
    req: &HttpRequest,
    edge: &Edge,
    used: Use,
) -> Result<(ArtifactId, StoredArtifact), Fault> {
    let platform = &edge.platform;
    let id: ArtifactId = signed(req, edge, used, "artifact")?;
    let upload = endpoints::read_upload(&platform.world, id)?.state.clone();
    if upload.artifact.state == ArtifactState::Deleted {
        return Err(Fault::NotFound("artifact"));
    }
    check_reachable(&platform.world, upload.artifact.app_id)?;
    Ok((id, upload))
}

pub(super) async fn head(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    let mut heading = Heading::uncounted(req.head(), &edge);
    let found = async {
        let (id, upload) = open(&req, &edge, Use::Upload)?;
        heading.allowance = makers(&edge, &upload);
        let offset = match upload.artifact.state {
            ArtifactState::Pending => {
                durable_offset(&edge.platform.world, id, &upload.staged).await?
            }
            _ => upload.staged.offset,
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

/// The calls left of the user who created the artifact: a signed URL acts for that user.
pub(super) fn makers(edge: &Edge, upload: &StoredArtifact) -> Option<Allowance> {
    let platform = &edge.platform;
    match upload.artifact.provenance.uploaded_by {
        Some(maker) => platform.authn.peek_user(&platform.world, maker),
        // Only the master key creates an artifact without a user.
        None => Some(Allowance::unlimited()),
    }
}

/// Describes the state of an upload, with the header names of the IETF draft for resumable uploads.
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
    let mut heading = Heading::uncounted(req.head(), &edge);
    match receive(&req, &edge, &mut heading, payload).await {
        Ok((artifact_id, offset, length)) => {
            let status = if length == Some(offset) { StatusCode::OK } else { StatusCode::ACCEPTED };
            let mut answer = heading.value(status, &Received { artifact_id, received: offset });
            describe(&mut answer, offset, length);
            answer
        }
        Err(fault) => {
            tracing::info!(request_id = %heading.request_id, function = "putArtifactContent", code = fault.code(), error = %fault, "refused");
            heading.fault_unread(&fault)
        }
    }
}

/// The range that the bytes of a request fill.
struct UploadRange {
    start: u64,
    /// One past the last byte, if the request names it.
    end: Option<u64>,
    /// The length of the whole file, if known.
    total: Option<u64>,
    /// The expected SHA-256 of this request's bytes.
    digest: Option<[u8; 32]>,
}

async fn receive(
    req: &HttpRequest,
    edge: &Edge,
    heading: &mut Heading<'_>,
    payload: web::Payload,
) -> Result<(ArtifactId, u64, Option<u64>), Fault> {
    let (id, upload) = open(req, edge, Use::Upload)?;
    heading.allowance = makers(edge, &upload);
    check_open(&upload)?;
    let part = read_part(req, &upload)?;
    let limit = edge.platform.settings.largest_artifact;
    let last = part.total.or(part.end).unwrap_or(0);
    if last > limit {
        return Err(Fault::TooLarge { limit });
    }
    let maker = upload.artifact.provenance.uploaded_by.map(RateKey::User);
    let _place = edge.shared.uploads.share(maker, 1)?;
    let mut staged = staging::open(edge, id).await?;
    // Read the record again under the lock: another writer may have added bytes, or verification
    // may have begun.
    let upload = endpoints::read_upload(&edge.platform.world, id)?.state.clone();
    if let Err(fault) = check_open(&upload) {
        edge.vault.remove_if_empty(id, &staged);
        return Err(fault);
    }
    let durable = durable_offset(&edge.platform.world, id, &upload.staged).await?;
    if part.start != durable && part.start != 0 {
        let reason = format!(
            "this part starts at byte {}, but {durable} bytes are stored; go on there",
            part.start
        );
        return Err(Fault::WrongOffset { reason, offset: durable });
    }
    let is_part = req.headers().contains_key(header::CONTENT_RANGE);
    if part.start == 0 && durable > 0 && is_part && !upload.is_in_too_many_pieces() {
        let reason =
            format!("this part starts at byte 0, but {durable} bytes are stored; go on there");
        return Err(Fault::WrongOffset { reason, offset: durable });
    }
    let length = part.total.or(upload.declared.size);
    let more = part.end.map_or(0, |end| end.saturating_sub(part.start));
    edge.platform.world.ports.machine.check_room(more)?;
    let most = part.end.or(length).unwrap_or(limit);
    let writer = Writer::new(edge, id, &upload, length)?;
    if part.start < upload.staged.offset {
        writer.go_back(&upload, part.start).await?;
    }
    staged = on_disk(move || cut(staged, part.start)).await?.map_err(|e| disk(&e))?;
    let stored = writer.write(staged, payload, part.start, most, part.digest).await?;
    edge.shared.figures.uploaded.inc_by(stored.offset.saturating_sub(part.start));
    stored.problem.map_or(Ok((id, stored.offset, stored.length)), Err)
}

/// Whether the upload accepts bytes.
fn check_open(upload: &StoredArtifact) -> Result<(), Fault> {
    if upload.artifact.state == ArtifactState::Pending && !upload.is_complete() {
        return Ok(());
    }
    Err(Fault::NotNow(format!(
        "this upload takes no more bytes: {}",
        if upload.is_complete() { "it is complete, finalize it" } else { "open a new one" }
    )))
}

/// Reads `Content-Range: bytes a-b/total`, or takes the whole file. RFC 9530 defines
/// `Content-Digest`.
fn read_part(req: &HttpRequest, upload: &StoredArtifact) -> Result<UploadRange, Fault> {
    let text = |name: &str| req.headers().get(name).and_then(|v| v.to_str().ok());
    let length: Option<u64> = text("content-length").and_then(|n| n.parse().ok());
    let digest = text("content-digest").map(read_digest).transpose()?;
    let declared = upload.declared.size;
    let part = match text("content-range") {
        None => UploadRange { start: 0, end: length, total: length, digest },
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
            UploadRange { start: first, end: Some(last + 1), total, digest }
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
    let bytes = BASE64.decode(value.as_bytes()).map_err(|_| bad())?;
    bytes.try_into().map_err(|_| bad())
}
