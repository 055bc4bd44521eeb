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
mod output;
mod place;
mod seccomp;
mod tether;

use super::{Docker, daemon::Daemon, produce::produce};
use crate::{BuildEvent, BuildSpec, Built, EngineError, Isolation, Labels};
use bytes::Bytes;
use caches::Caches;
use futures_core::stream::BoxStream;
use place::Place;
use std::{io, time::Duration};
use tether::Tethers;
use tokio::sync::mpsc::Sender;

type Sends = Sender<Result<BuildEvent, EngineError>>;

/// What all isolated builds of a client share.
#[derive(Default)]
pub(super) struct Shared {
    caches: Caches,
    tethers: Tethers,
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
            or_later(shared.tethers.remove_others(&daemon, labels).await);
            let image = {
                let _one_at_a_time = shared.builder.lock().await;
                builder::ensure(&daemon, &base, &sends).await?
            };
            let place = Place::open(&daemon, &shared, &image, &spec, &isolation).await?;
            let made = place.build(context, &sends).await;
            place.close().await;
            or_later(caches::prune(&daemon, &shared.caches, labels, None).await);
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
    let daemon: &Daemon = &docker.daemon;
    docker.isolated.tethers.remove_others(daemon, labels).await?;
    caches::prune(daemon, &docker.isolated.caches, labels, Some(age)).await
}
