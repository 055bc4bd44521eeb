//! The disks that builds leave to the next ones of the same owner: base images, finished steps, and what
//! `RUN --mount=type=cache` keeps. One build at a time uses a disk.

use crate::{
    EngineError, Labels,
    docker::{daemon::Daemon, helpers::in_use::InUse, objects, view},
};
use contract::Timestamp;
use std::time::Duration;

/// How many disks are kept. The oldest go first.
const MOST: usize = 16;

/// The volume of an owner's disk.
pub(super) fn volume(owner: &str) -> String {
    format!("svc-build-{owner}")
}

/// Removes the disks with these labels that are older than `age`, and the oldest of too many. Those that
/// are in use stay.
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
    let surplus = disks.len().saturating_sub(MOST);
    for (place, (made_at, name)) in disks.into_iter().enumerate() {
        let is_old = age.is_some_and(|age| now.since(made_at) >= age);
        if place >= surplus && !is_old {
            continue;
        }
        let Some(_taken) = in_use.take(&name) else { continue };
        match objects::remove_volume(daemon, &name).await {
            Ok(()) => tracing::info!(name, "the disk of earlier builds was removed"),
            // The container of a build that was cut off has it still.
            Err(EngineError::Refused(_)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
