//! Images as archives, to take one from an engine to another.

use super::{
    daemon::{Daemon, TRANSFER_IDLE},
    errors::DaemonFailure,
    produce::produce,
};
use crate::{Archive, EngineError};
use bollard::{body_try_stream, query_parameters::ImportImageOptionsBuilder};
use futures_util::StreamExt;
use std::io;

/// Reads an image. A stream that is cut off ends with an error.
pub(super) fn save(daemon: &Daemon, reference: &str) -> Archive {
    let (daemon, reference) = (daemon.clone(), reference.to_owned());
    produce(|sends| async move {
        let client = match daemon.client().await {
            Ok(client) => client,
            Err(failure) => {
                let _ = sends.send(Err(failure.about_image(&reference))).await;
                return;
            }
        };
        let mut parts = Box::pin(client.export_image(&reference));
        while let Some(part) = daemon.next(TRANSFER_IDLE, &mut parts).await {
            let part = part.map_err(|failure| failure.about_image(&reference));
            let is_last = part.is_err();
            if sends.send(part).await.is_err() || is_last {
                return;
            }
        }
    })
}

/// Writes an image. Without the end of the archive, the daemon takes nothing over.
pub(super) async fn load(daemon: &Daemon, archive: Archive) -> Result<(), EngineError> {
    let about = |failure: DaemonFailure| failure.about("image archive");
    let client = daemon.client().await.map_err(about)?;
    let archive = archive.map(|part| part.map_err(io::Error::other));
    let options = ImportImageOptionsBuilder::default().quiet(true).build();
    let body = body_try_stream(archive);
    let mut answers = Box::pin(client.import_image(options, body, None));
    while let Some(answer) = daemon.next(TRANSFER_IDLE, &mut answers).await {
        answer.map_err(about)?;
    }
    Ok(())
}
