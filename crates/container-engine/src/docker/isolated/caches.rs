//! The disks that builds leave to the next ones of the same owner: base images, finished steps, and what
//! `RUN --mount=type=cache` keeps. One build at a time uses a disk.

use crate::{
    EngineError, Labels,
    docker::{
        daemon::{CHANGE, Daemon, LOOK},
        objects, view,
    },
};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions};
use contract::Timestamp;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How many disks are kept. The oldest go first.
const MOST: usize = 16;

/// The volume of an owner's disk.
pub(super) fn volume(owner: &str) -> String {
    format!("svc-build-{owner}")
}

/// The disks that builds of this client use now, by the names of their volumes.
#[derive(Clone, Default)]
pub(super) struct Caches(Arc<Mutex<HashSet<String>>>);

/// The right to use a disk, until it is dropped.
pub(super) struct Taken {
    volume: String,
    caches: Caches,
}

impl Caches {
    fn taken(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the disk on this volume, unless another build has it.
    pub fn take(&self, volume: &str) -> Option<Taken> {
        let is_free = self.taken().insert(volume.to_owned());
        is_free.then(|| Taken { volume: volume.to_owned(), caches: self.clone() })
    }
}

impl Taken {
    pub fn name(&self) -> &str {
        &self.volume
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.caches.taken().remove(&self.volume);
    }
}

/// Removes the disks with these labels that are older than `age`, and the oldest of too many.
pub(super) async fn prune(
    daemon: &Daemon,
    caches: &Caches,
    labels: &Labels,
    age: Option<Duration>,
) -> Result<(), EngineError> {
    let filters = objects::filters(labels);
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let found = daemon
        .ask(LOOK, |client| async move { client.list_volumes(Some(options)).await })
        .await
        .map_err(|failure| failure.about("list of volumes"))?;
    let now = objects::now(daemon).await?;
    let made_at = |text: Option<&str>| text.and_then(view::moment).unwrap_or(now);
    let mut disks: Vec<(Timestamp, String)> = found
        .volumes
        .unwrap_or_default()
        .into_iter()
        .map(|volume| (made_at(volume.created_at.as_deref()), volume.name))
        .collect();
    disks.sort();
    let surplus = disks.len().saturating_sub(MOST);
    for (place, (made_at, name)) in disks.into_iter().enumerate() {
        let is_old = age.is_some_and(|age| now.since(made_at) >= age);
        if place >= surplus && !is_old {
            continue;
        }
        // A build uses it.
        let Some(_taken) = caches.take(&name) else { continue };
        let volume = name.as_str();
        let removed = daemon.ask(CHANGE, |client| async move {
            client.remove_volume(volume, None::<RemoveVolumeOptions>).await
        });
        match removed.await {
            Ok(()) => tracing::info!(name, "the disk of earlier builds was removed"),
            Err(failure) if failure.is(409) || failure.is(404) => {}
            Err(failure) => return Err(failure.about(format_args!("volume {name}"))),
        }
    }
    Ok(())
}
