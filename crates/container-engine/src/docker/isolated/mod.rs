//! Builds that reach nothing but what they are given: each runs in a container of its own, which is thrown
//! away.
//!
//! The container has no network, no capability with which it could leave its user namespace, a disk of
//! fixed size, and limits of memory, processors and processes. Its only way out is a Unix socket: the
//! proxy that the caller serves there decides about each address. `buildah` makes the image in it, as a
//! user without rights. Nothing that comes out is trusted: [`archive`] reads the image and writes it
//! again before the daemon gets it.
//!
//! Both containers of a build are [tethered](tether) to this process.

mod archive;
mod bodies;
mod builder;
mod caches;
mod in_use;
mod output;
mod place;
mod seccomp;
mod tether;

use super::{Docker, produce::produce};
use crate::{BuildEvent, BuildSpec, Built, EngineError, Isolation, Labels};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use in_use::InUse;
use place::Place;
use std::{io, time::Duration};
use tokio::sync::mpsc::Sender;

type Sends = Sender<Result<BuildEvent, EngineError>>;

/// What all isolated builds of a client share.
#[derive(Default)]
pub(super) struct Shared {
    /// The disks, by their volumes.
    disks: InUse,
    containers: InUse,
    /// Held while the image of the builds is looked for or made.
    builder: tokio::sync::Mutex<()>,
}

/// Builds an image. Dropping the stream ends the build.
pub(super) fn build(
    docker: &Docker,
    spec: BuildSpec,
    isolation: Isolation,
    context: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, Result<BuildEvent, EngineError>> {
    let (daemon, shared) = (docker.daemon.clone(), docker.isolated.clone());
    let base = docker.builder_base.clone();
    produce(|sends| async move {
        let made = async {
            let labels = &isolation.labels;
            or_later(tether::remove_others(&daemon, &shared.containers, labels).await);
            let image = {
                let _one_at_a_time = shared.builder.lock().await;
                builder::ensure(&daemon, &base, &sends).await?
            };
            let place = Place::open(&daemon, &shared, &image, &spec, &isolation).await?;
            let made = place.build(context, &sends).await;
            place.close().await;
            or_later(caches::prune(&daemon, &shared.disks, labels, None).await);
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
    let (daemon, shared) = (&docker.daemon, &docker.isolated);
    tether::remove_others(daemon, &shared.containers, labels).await?;
    caches::prune(daemon, &shared.disks, labels, Some(age)).await
}
