//! The disks that builds leave to the next ones of the same owner upon the same base image: finished steps, images that
//! they pulled, and what `RUN --mount=type=cache` keeps. One build at a time uses a disk.

use super::bases::{self, Base};
use crate::{
    EngineError, Labels,
    docker::{daemon::Daemon, helpers::in_use::InUse, objects, view},
};
use contract::Timestamp;
use std::time::Duration;

/// How many disks are kept. The oldest go first.
const MOST: usize = 16;

/// The volume of an owner's disk. The finished steps there lack what stands in the copy of their base image, so builds
/// without that copy have another disk.
pub(super) fn volume(owner: &str, base: Option<&Base>) -> String {
    match base {
        None => format!("svc-build-{owner}"),
        Some(base) => format!("svc-build-{owner}.{}", base.hash),
    }
}

/// Removes the disks, and the volumes of base images, with these labels that are older than `age`, and the oldest of
/// too many. Those that are in use stay.
pub(super) async fn prune(
    daemon: &Daemon,
    in_use: &InUse,
    labels: &Labels,
    age: Option<Duration>,
) -> Result<(), EngineError> {
    let found = objects::volumes(daemon, labels).await?;
    let now = objects::now(daemon).await?;
    let made_at = |text: Option<&str>| text.and_then(view::moment).unwrap_or(now);
    let mut disks: Vec<(Timestamp, String)> = found
        .into_iter()
        .map(|volume| (made_at(volume.created_at.as_deref()), volume.name))
        .collect();
    disks.sort();
    let (bases, disks): (Vec<_>, Vec<_>) =
        disks.into_iter().partition(|(_, name)| bases::is_base(name));
    for (volumes, most) in [(disks, MOST), (bases, bases::MOST)] {
        let surplus = volumes.len().saturating_sub(most);
        for (place, (made_at, name)) in volumes.into_iter().enumerate() {
            let is_old = age.is_some_and(|age| now.since(made_at) >= age);
            if place >= surplus && !is_old {
                continue;
            }
            let Some(_taken) = in_use.take(&name) else { continue };
            match objects::remove_volume(daemon, &name).await {
                Ok(()) => tracing::info!(name, "what earlier builds left was removed"),
                // The container of a build has it.
                Err(EngineError::Refused(_)) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}
