//! Builds that reach nothing but what they are given: each runs in a container of its own, which is thrown
//! away.
//!
//! The container has no network, no capability with which it could leave its user namespace, a disk of
//! fixed size, and limits of memory, processors and processes. Its only way out is a Unix socket: the
//! proxy that the caller serves there decides about each address. `buildah` makes the image in it, as a
//! user without rights. Nothing that comes out is trusted: [`archive`] reads the image and writes it
//! again before the daemon gets it.
//!
//! The containers of a build are [tethered](super::helpers::tether) to this process.

mod archive;
mod bases;
mod bodies;
mod caches;
mod output;
mod place;
mod programs;
mod seccomp;

use super::{
    Docker,
    helpers::{Sends, tether},
    produce::produce,
};
use crate::{BuildEvent, BuildSpec, Built, EngineError, Isolation, Labels};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use place::Place;
use std::{io, time::Duration};

/// Builds an image. Dropping the stream ends the build.
pub(super) fn build(
    docker: &Docker,
    spec: BuildSpec,
    isolation: Isolation,
    context: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, Result<BuildEvent, EngineError>> {
    let (helpers, disks) = (docker.helpers.clone(), docker.disks.clone());
    produce(|sends| async move {
        let made = async {
            let labels = &isolation.labels;
            or_later(tether::remove_others(&helpers, labels).await);
            let image = helpers.image(Some(&sends)).await?;
            let place = Place::open(&helpers, &disks, &image, &spec, &isolation).await?;
            let made = place.build(context, &sends).await;
            place.close().await;
            or_later(caches::prune(&helpers.daemon, &disks, labels, None).await);
            made
        };
        let last = made.await.map(|image| BuildEvent::Built(Built { image }));
        let _ = sends.send(last).await;
    })
}

/// What is not tidied up now does not keep a build from its end.
fn or_later(tidied: Result<(), EngineError>) {
    if let Err(e) = tidied {
        tracing::warn!(error = %e, "what earlier builds left is not removed yet");
    }
}

/// Removes what builds with these labels left: containers of which this client knows nothing, and the
/// disks that are older than this.
pub(super) async fn prune(
    docker: &Docker,
    labels: &Labels,
    age: Duration,
) -> Result<(), EngineError> {
    tether::remove_others(&docker.helpers, labels).await?;
    caches::prune(&docker.helpers.daemon, &docker.disks, labels, Some(age)).await
}
