//! Takes the archives of folders.

use super::{
    Edge,
    reply::Heading,
    request,
    staging::{disk, send},
    upload::Signed,
};
use crate::adapters::archive::ArchiveError;
use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use actors::{
    call::{lookup::check_reachable, rate_limit::RateKey},
    functions::hosting::deployments::folder::signed_object,
    kinds::{
        delivery::artifacts::address::{self, Use},
        people::tenant::tenant,
    },
};
use bytes::Bytes;
use contract::{
    AppId, Fault, Sha256,
    endpoint::sources::{MAX_ARCHIVE, SourceStored},
};
use data_encoding::HEXLOWER;
use sha2::Digest;
use std::io::{self, Write};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

/// Chunks between the connection and the disk.
const QUEUE: usize = 32;

pub(super) async fn put(
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    let heading = Heading::uncounted(req.head(), &edge);
    match receive(&req, &edge, payload).await {
        Ok(stored) => heading.value(StatusCode::OK, &stored),
        Err(fault) => {
            tracing::info!(request_id = %heading.request_id, function = "putSource", code = fault.code(), error = %fault, "refused");
            heading.fault_unread(&fault)
        }
    }
}

async fn receive(
    req: &HttpRequest,
    edge: &Edge,
    payload: web::Payload,
) -> Result<SourceStored, Fault> {
    let (app, sha256) = open(req, edge)?;
    check_reachable(&edge.platform.world, app)?;
    let length = req.headers().get("content-length").and_then(|length| length.to_str().ok());
    if length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|n| n > MAX_ARCHIVE) {
        return Err(Fault::TooLarge { limit: MAX_ARCHIVE });
    }
    // The folder is unpacked beside the archive.
    edge.platform.world.ports.machine.check_room(MAX_ARCHIVE)?;
    let holder = RateKey::address(request::origin(req.head(), edge).address);
    let _place = edge.shared.uploads.share(Some(holder), 1)?;
    let folders = edge.folders.clone();
    let (chunks, queue) = mpsc::channel(QUEUE);
    let writing =
        tokio::task::spawn_blocking(move || folders.begin().and_then(|file| write(file, queue)));
    let sent = send(payload, chunks, MAX_ARCHIVE).await;
    let (file, found) = writing.await.map_err(|_| Fault::Uncertain)?.map_err(|e| disk(&e))?;
    sent?;
    if found != sha256.as_str() {
        return Err(Fault::invalid("sha256", "is not the hash of the bytes that arrived"));
    }
    let tenant = tenant(&edge.platform.world.store, app)?;
    edge.folders.keep(tenant, app, &sha256, file).await.map_err(|e| match e {
        ArchiveError::Refused(why) => Fault::invalid("archive", why),
        ArchiveError::Io(e) => disk(&e),
    })?;
    Ok(SourceStored { sha256 })
}

/// The app and the hash of a signed address.
fn open(req: &HttpRequest, edge: &Edge) -> Result<(AppId, Sha256), Fault> {
    let part = |name: &str| req.match_info().get(name).unwrap_or_default();
    let app: AppId = part("appId").parse().map_err(|_| Fault::NotFound("app"))?;
    let sha256: Sha256 = part("sha256").parse().map_err(|_| Fault::NotFound("folder"))?;
    let Signed { expires, signature } = Signed::of(req)?;
    let (key, now) = (&edge.platform.settings.signing_key, edge.platform.world.ports.clock.now());
    address::check(key, Use::Source, signed_object(app, &sha256), expires, &signature, now)?;
    Ok((app, sha256))
}

/// Writes the bytes, and hashes them.
fn write(
    mut file: NamedTempFile,
    mut queue: mpsc::Receiver<Bytes>,
) -> io::Result<(NamedTempFile, String)> {
    let mut hash = sha2::Sha256::new();
    while let Some(chunk) = queue.blocking_recv() {
        file.write_all(&chunk)?;
        hash.update(&chunk);
    }
    Ok((file, HEXLOWER.encode(&hash.finalize())))
}
