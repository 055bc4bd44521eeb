//! A resumable upload: it survives lost chunks and restarts of this process.
//!
//! Source: "Resumable upload" of Google's guides for its APIs. A chunk is a multiple of 256 KiB.

use super::{
    edits::{Edits, Uploaded},
    progress::UploadAddress,
    refusal::Stop,
};
use crate::{AppFile, ReadAt, RemoteError};
use contract::artifacts::ArtifactKind;
use remote::Repeat;
use reqwest::{
    Client, Url,
    header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE},
};
use std::time::Duration;

const CHUNK: u64 = 8 << 20;
/// How long a chunk may take: 90 KiB a second.
const CHUNK_WITHIN: Duration = Duration::from_secs(90);
const BYTES: &str = "application/octet-stream";

/// How far an upload has come.
#[derive(Debug)]
pub(super) enum Sent {
    /// Google has the first bytes, so many.
    Part(u64),
    Whole(Uploaded),
}

/// Opens an upload in an edit.
pub(super) async fn begin(
    edits: &Edits<'_>,
    edit: &str,
    file: &AppFile,
) -> Result<UploadAddress, Stop> {
    let kind = if file.kind == ArtifactKind::Aab { "bundles" } else { "apks" };
    let mut url = edits.url(&["upload"], &["edits", edit, kind])?;
    url.query_pairs_mut().append_pair("uploadType", "resumable");
    let build = |http: &Client| {
        http.post(url.clone())
            .header("X-Upload-Content-Type", BYTES)
            .header("X-Upload-Content-Length", file.size)
            .header(CONTENT_LENGTH, 0)
    };
    let answer = edits.send(Repeat::Harmless, build).await?;
    let session = answer.header("location").and_then(|it| Url::parse(it).ok());
    let session = session.filter(|it| is_googles(it, edits.address)).ok_or_else(|| {
        RemoteError::Refused("Google Play names no address of its own to upload to.".into())
    })?;
    Ok(UploadAddress(session.into()))
}

/// Whether the address belongs to the API. The bytes and the token go there.
fn is_googles(session: &Url, api: &str) -> bool {
    let is_at_google = session.scheme() == "https"
        && session.host_str().is_some_and(|host| host.ends_with(".googleapis.com"));
    is_at_google || Url::parse(api).is_ok_and(|api| api.origin() == session.origin())
}

/// Asks Google how far it is, and sends the chunk that follows.
pub(super) async fn send(
    edits: &Edits<'_>,
    session: &UploadAddress,
    file: &AppFile,
    content: &dyn ReadAt,
) -> Result<Sent, Stop> {
    let size = file.size;
    let offset = match put(edits, session, &format!("bytes */{size}"), bytes::Bytes::new()).await? {
        Sent::Part(offset) if offset < size => offset,
        whole @ Sent::Whole(_) => return Ok(whole),
        Sent::Part(offset) => return Err(impossible(offset, size)),
    };
    let length = CHUNK.min(size - offset);
    let unreadable = |e: std::io::Error| RemoteError::Busy {
        why: format!("The file cannot be read: {e}"),
        after: Duration::from_secs(10),
    };
    let chunk = content.read(offset, length).await.map_err(unreadable)?;
    let range = format!("bytes {offset}-{}/{size}", offset + length - 1);
    match put(edits, session, &range, chunk).await? {
        Sent::Part(offset) if offset >= size => Err(impossible(offset, size)),
        sent => Ok(sent),
    }
}

fn impossible(offset: u64, size: u64) -> Stop {
    let why =
        format!("Google Play has {offset} of {size} bytes, and does not complete the upload.");
    Stop::Store(RemoteError::Refused(why))
}

async fn put(
    edits: &Edits<'_>,
    session: &UploadAddress,
    range: &str,
    chunk: bytes::Bytes,
) -> Result<Sent, Stop> {
    let build = |http: &Client| {
        http.put(&session.0)
            .timeout(CHUNK_WITHIN)
            .header(CONTENT_TYPE, BYTES)
            .header(CONTENT_LENGTH, chunk.len())
            .header(CONTENT_RANGE, range)
            .body(chunk.clone())
    };
    let answer = edits.google.send(edits.account, Repeat::Harmless, build).await?;
    match answer.status {
        308 => Ok(Sent::Part(received(answer.header("range")))),
        404 | 410 => Err(Stop::UploadGone),
        _ if answer.is_ok() => Ok(Sent::Whole(answer.read()?)),
        _ => Err(super::refusal::stop(&crate::google::GoogleRefusal::of(&answer))),
    }
}

/// How many bytes Google has, from a header such as `bytes=0-524287`. Without one, none.
fn received(range: Option<&str>) -> u64 {
    let last = range.and_then(|range| range.strip_prefix("bytes=0-")?.parse::<u64>().ok());
    last.map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_google_only() {
        let api = "https://androidpublisher.googleapis.com";
        let is_googles = |session: &str, api| super::is_googles(&Url::parse(session).unwrap(), api);
        assert!(is_googles("https://androidpublisher.googleapis.com/upload/x?upload_id=1", api));
        assert!(is_googles("http://127.0.0.1:99/upload/x", "http://127.0.0.1:99"));
        for elsewhere in [
            "http://androidpublisher.googleapis.com/upload",
            "https://googleapis.com.example.org/upload",
            "https://example.org/upload",
        ] {
            assert!(!is_googles(elsewhere, api), "{elsewhere}");
        }
        assert!(!is_googles("http://127.0.0.1:98/upload/x", "http://127.0.0.1:99"));
    }

    #[test]
    fn the_range_says_how_much_arrived() {
        assert_eq!(received(Some("bytes=0-524287")), 524_288);
        assert_eq!(received(None), 0);
    }
}
