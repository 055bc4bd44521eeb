//! The content of volumes as archives, to take it from an engine to another.
//!
//! A [tethered](super::helpers::tether) container has the volume, and the daemon reads or writes what is there. It
//! keeps owners, permissions and links, but no sockets and no access control lists.

use super::{
    Docker,
    daemon::{LOOK, TRANSFER_IDLE},
    errors::DaemonFailure,
    fingerprint::{self, Fingerprint},
    helpers::{
        bodies,
        tether::{self, Tethered},
    },
    produce::produce,
};
use crate::{Archive, EngineError, Labels};
use bollard::{
    body_try_stream,
    models::{HostConfig, Mount, MountType},
    query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder},
};
use futures_util::StreamExt;
use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Label: the volume that a container has.
const LABEL: &str = "svc.volume";
/// Where it has the volume.
const PLACE: &str = "/volume";
/// Bytes of memory.
const MEMORY: i64 = 64 << 20;
/// How long the daemon may take to write a volume.
const WRITE_WITHIN: Duration = Duration::from_secs(3600);

/// Reads a volume. A stream that is cut off ends with an error.
pub(super) async fn read(docker: &Docker, name: &str) -> Result<Archive, EngineError> {
    let holder = hold(docker, name, true).await?;
    Ok(content(docker, holder))
}

/// Writes a volume that is empty, reads it back, and compares.
pub(super) async fn write(
    docker: &Docker,
    name: &str,
    archive: Archive,
) -> Result<(), EngineError> {
    let holder = hold(docker, name, false).await?;
    let broken: Arc<OnceLock<EngineError>> = Arc::default();
    let seen = broken.clone();
    let (archive, sent) = fingerprint::along(archive);
    let archive = archive.map(move |part| {
        part.map_err(|e| {
            let _ = seen.set(e.clone());
            io::Error::other(e)
        })
    });
    let options = UploadToContainerOptionsBuilder::default().path("/").build();
    let (container, body) = (holder.name().to_owned(), body_try_stream(archive));
    let written = docker
        .daemon
        .ask(WRITE_WITHIN, |client| async move {
            client.upload_to_container(&container, Some(options), body).await
        })
        .await;
    // If the archive breaks off, the daemon reports only that it is incomplete.
    if let Some(why) = broken.get() {
        return Err(why.clone());
    }
    written.map_err(|failure| failure.about("content of a volume"))?;
    let sent = sent.await.unwrap_or_else(|e| Err(EngineError::Unreachable(e.to_string())))?;
    let found = Fingerprint::of(content(docker, holder)).await?;
    if found == sent {
        return Ok(());
    }
    Err(EngineError::Refused(format!("of {sent}, this arrived in the volume: {found}")))
}

/// A container that has the volume.
async fn hold(docker: &Docker, name: &str, only_reads: bool) -> Result<Tethered, EngineError> {
    let labels = Labels::from([(LABEL.to_owned(), name.to_owned())]);
    // A volume that a container names is made if it is missing.
    let (daemon, volume) = (&docker.daemon, name.to_owned());
    daemon
        .ask(LOOK, |client| async move { client.inspect_volume(&volume).await })
        .await
        .map_err(|failure| failure.about(format_args!("volume {name}")))?;
    let image = docker.helpers.image(None).await?;
    tether::remove_others(&docker.helpers, &labels).await?;
    let mount = Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some(PLACE.to_owned()),
        read_only: Some(only_reads),
        ..Mount::default()
    };
    // The daemon writes beside the volume, too: its root is an entry of the folder that has it.
    let host = HostConfig {
        readonly_rootfs: Some(false),
        mounts: Some(vec![mount]),
        ..bodies::small(MEMORY)
    };
    let body = bodies::body(&image, &labels, "0", &["sh", "-c", "exec cat >/dev/null"], host);
    Tethered::start(&docker.helpers, &image, body, None).await
}

/// What the container has in its volume. The container lives as long as the stream.
fn content(docker: &Docker, holder: Tethered) -> Archive {
    let daemon = docker.daemon.clone();
    produce(|sends| async move {
        let about = |failure: DaemonFailure| failure.about("content of a volume");
        let client = match daemon.client().await {
            Ok(client) => client,
            Err(failure) => {
                let _ = sends.send(Err(about(failure))).await;
                return;
            }
        };
        let options = DownloadFromContainerOptionsBuilder::default().path(PLACE).build();
        let mut parts = Box::pin(client.download_from_container(holder.name(), Some(options)));
        while let Some(part) = daemon.next(TRANSFER_IDLE, &mut parts).await {
            let part = part.map_err(about);
            let is_last = part.is_err();
            if sends.send(part).await.is_err() || is_last {
                break;
            }
        }
        holder.end().await;
    })
}
