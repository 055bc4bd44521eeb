//! Downloads of verified artifacts and of backups, with ranges, a strong `ETag` and permanent
//! caching: the bytes never change.

use super::{Edge, reply::Heading, upload};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method, StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web,
};
use actors::{
    functions::hosting::backups::reachable_backup, kinds::delivery::artifacts::address::Use,
};
use contract::{
    BackupId, Fault, Sha256,
    artifacts::{ArtifactKind, ArtifactState},
    backups::BackupKind,
};
use data_encoding::{BASE64, HEXLOWER};
use futures_util::{StreamExt, stream::LocalBoxStream};
use std::ops::Range;

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

pub(super) async fn get(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    let mut heading = Heading::uncounted(req.head(), &edge);
    match serve(&req, &edge, &mut heading).await {
        Ok(answer) => answer,
        Err(fault) => heading.fault(&fault),
    }
}

async fn serve(
    req: &HttpRequest,
    edge: &Edge,
    heading: &mut Heading<'_>,
) -> Result<HttpResponse, Fault> {
    let (id, upload) = upload::open(req, edge, Use::Download)?;
    heading.allowance = upload::makers(edge, &upload);
    let artifact = &upload.artifact;
    let (Some(size), Some(sha256), ArtifactState::Verified) =
        (artifact.size, &artifact.sha256, artifact.state)
    else {
        return Err(Fault::NotNow(
            "this artifact is not verified; only verified ones can be downloaded".into(),
        ));
    };
    let file = Attachment {
        size,
        sha256,
        content_type: content_type(artifact.kind),
        name: artifact.file_name.as_str(),
    };
    let read = async |range| {
        let stream = edge.vault.read(id, range).await.map_err(|e| read_failed(&id, &e))?;
        Ok(stream.map(|block| block.map_err(std::io::Error::other)).boxed_local())
    };
    file.answer(req, edge, heading, read).await
}

/// Logs why the bytes cannot be read. The caller learns only that they are unavailable.
fn read_failed(id: &impl std::fmt::Display, e: &impl std::fmt::Display) -> Fault {
    tracing::error!(%id, error = %e, "kept bytes cannot be read");
    Fault::Unavailable("the store of files")
}

pub(super) async fn get_backup(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    let heading = Heading::uncounted(req.head(), &edge);
    match serve_backup(&req, &edge, &heading).await {
        Ok(answer) => answer,
        Err(fault) => heading.fault(&fault),
    }
}

async fn serve_backup(
    req: &HttpRequest,
    edge: &Edge,
    heading: &Heading<'_>,
) -> Result<HttpResponse, Fault> {
    let id: BackupId = upload::signed(req, edge, Use::Backup, "backup")?;
    let backup = reachable_backup(&edge.platform.world, id)?;
    let (Some(size), Some(sha256)) = (backup.size, &backup.sha256) else {
        return Err(Fault::NotNow("this backup is not ready".into()));
    };
    let end = match backup.kind {
        BackupKind::DocumentDb => "archive.gz",
        BackupKind::SqlDb => "sql.gz",
    };
    let name = format!("{id}.{end}");
    let file = Attachment { size, sha256, content_type: "application/gzip", name: &name };
    let read =
        async |range| edge.dumps.part(id, sha256, range).await.map_err(|e| read_failed(&id, &e));
    file.answer(req, edge, heading, read).await
}

/// A file that never changes.
struct Attachment<'a> {
    size: u64,
    sha256: &'a Sha256,
    content_type: &'static str,
    name: &'a str,
}

type Blocks = LocalBoxStream<'static, std::io::Result<bytes::Bytes>>;

impl Attachment<'_> {
    async fn answer(
        &self,
        req: &HttpRequest,
        edge: &Edge,
        heading: &Heading<'_>,
        read: impl AsyncFnOnce(Range<u64>) -> Result<Blocks, Fault>,
    ) -> Result<HttpResponse, Fault> {
        let (size, tag) = (self.size, format!("\"{}\"", self.sha256));
        let text = |name: HeaderName| req.headers().get(name).and_then(|v| v.to_str().ok());
        let known = text(header::IF_NONE_MATCH).is_some_and(|tags| {
            tags.split(',').any(|t| t.trim().trim_start_matches("W/") == tag || t.trim() == "*")
        });
        let asked = text(header::RANGE).filter(|_| text(header::IF_RANGE).is_none_or(|t| t == tag));
        let range = match asked.map(|range| read_range(range, size)) {
            _ if known => None,
            Some(RangeRequest::One(range)) => Some(range),
            Some(RangeRequest::Outside) => {
                let fault = Fault::invalid("Range", format!("lies outside of the {size} bytes"));
                let mut answer = heading.fault(&fault);
                *answer.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
                insert(&mut answer, header::CONTENT_RANGE, &format!("bytes */{size}"));
                return Ok(answer);
            }
            Some(RangeRequest::Other) | None => None,
        };
        let status = match &range {
            _ if known => StatusCode::NOT_MODIFIED,
            Some(_) => StatusCode::PARTIAL_CONTENT,
            None => StatusCode::OK,
        };
        let mut answer = heading.json(status, Vec::new());
        if known {
            answer.headers_mut().remove(header::CONTENT_TYPE);
        } else {
            let bytes = range.clone().unwrap_or(0..size);
            let length = bytes.end - bytes.start;
            let stream = match *req.method() {
                Method::HEAD => futures_util::stream::empty().boxed_local(),
                _ => read(bytes).await?,
            };
            let sent = edge.shared.figures.downloaded.clone();
            let counted = stream.inspect(move |block| {
                sent.inc_by(block.as_ref().map_or(0, |b| b.len() as u64));
            });
            let body = actix_web::body::SizedStream::new(length, counted);
            answer = answer.set_body(actix_web::body::BoxBody::new(body));
            insert(&mut answer, header::CONTENT_TYPE, self.content_type);
            insert(&mut answer, header::CONTENT_DISPOSITION, &disposition(self.name));
            if let Some(range) = range {
                let range = format!("bytes {}-{}/{size}", range.start, range.end - 1);
                insert(&mut answer, header::CONTENT_RANGE, &range);
            }
        }
        insert(&mut answer, header::ETAG, &tag);
        insert(&mut answer, header::ACCEPT_RANGES, "bytes");
        insert(&mut answer, header::CACHE_CONTROL, "private, max-age=31536000, immutable");
        insert(&mut answer, REPR_DIGEST, &repr_digest(self.sha256.as_str()));
        Ok(answer)
    }
}

fn insert(answer: &mut HttpResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

/// `Repr-Digest` of RFC 9530: the hash of the whole file, even if the answer is a part of it.
fn repr_digest(sha256: &str) -> String {
    let bytes = HEXLOWER.decode(sha256.as_bytes()).unwrap_or_default();
    format!("sha-256=:{}:", BASE64.encode(&bytes))
}

fn content_type(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::Apk => "application/vnd.android.package-archive",
        ArtifactKind::Ipa | ArtifactKind::Aab => "application/octet-stream",
    }
}

/// The file name comes from a caller, so unusual characters are replaced.
fn disposition(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+() ".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    format!("attachment; filename=\"{name}\"")
}

/// A `Range` header, read.
enum RangeRequest {
    One(Range<u64>),
    /// No byte of the range exists.
    Outside,
    /// Several ranges or another unit: the answer is the whole file.
    Other,
}

fn read_range(text: &str, size: u64) -> RangeRequest {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|r| r.split_once('-')) else {
        return RangeRequest::Other;
    };
    let (start, end) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if last >= first => (first, last.saturating_add(1).min(size)),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, size),
        (Err(_), Ok(tail)) if first.trim().is_empty() && tail > 0 => {
            (size.saturating_sub(tail), size)
        }
        (Err(_), Ok(0)) if first.trim().is_empty() => return RangeRequest::Outside,
        _ => return RangeRequest::Other,
    };
    if start < end { RangeRequest::One(start..end) } else { RangeRequest::Outside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        let one = |text| match read_range(text, 100) {
            RangeRequest::One(range) => Some(range),
            _ => None,
        };
        assert_eq!(one("bytes=0-9"), Some(0..10));
        assert_eq!(one("bytes=90-"), Some(90..100));
        assert_eq!(one("bytes=-10"), Some(90..100));
        assert_eq!(one("bytes=-1000"), Some(0..100));
        assert_eq!(one("bytes=50-1000"), Some(50..100));
        assert!(matches!(read_range("bytes=100-", 100), RangeRequest::Outside));
        assert!(matches!(read_range("bytes=-0", 100), RangeRequest::Outside));
        assert!(matches!(read_range("bytes=0-1,5-6", 100), RangeRequest::Other));
        assert!(matches!(read_range("lines=0-1", 100), RangeRequest::Other));
    }
}
