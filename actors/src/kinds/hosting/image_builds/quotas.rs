//! What builds of images take of the quotas of their organization: the minutes of this machine, the images
//! that they leave, and the room for their logs.

use super::from_source::APP;
use crate::{
    kinds::{
        hosting::names,
        people::{
            apps::{self, Apps},
            usage,
        },
        world::World,
    },
    runtime::{
        side_record::{End, SideRecord},
        store::Store,
    },
};
use container_engine::EngineError;
use contract::{AppId, Fault, OrganizationId, Timestamp, quotas::Quota};
use serde::{Deserialize, Serialize};
use store::Merge;

/// So many bytes of a log are always kept, so that members see why a build failed.
const ALWAYS_KEPT: u64 = 64 << 10;

/// The minutes that this machine built images for an organization in one month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildMinutes {
    /// The end of the month (UTC).
    pub until: Timestamp,
    pub minutes: u64,
}

impl SideRecord for BuildMinutes {
    fn end(&self) -> End {
        End::At(self.until)
    }
}

impl Merge for BuildMinutes {
    type Delta = BuildMinutes;

    fn merge(old: Option<Self>, delta: &BuildMinutes) -> Option<Self> {
        let old = old.filter(|old| old.until >= delta.until);
        Some(match old {
            Some(old) if old.until > delta.until => old,
            Some(old) => BuildMinutes { minutes: old.minutes + delta.minutes, ..old },
            None => delta.clone(),
        })
    }
}

/// The minutes that this machine built images for an organization this month.
pub fn minutes(store: &Store, organization: OrganizationId, now: Timestamp) -> Result<u64, Fault> {
    let found = store.get::<BuildMinutes>(&organization)?;
    Ok(found.filter(|found| found.until > now).map_or(0, |found| found.minutes))
}

/// Refuses a build that would begin after all minutes of the month, or without room for its image.
pub fn check(world: &World, organization: OrganizationId) -> Result<(), Fault> {
    let now = world.ports.clock.now();
    let used = [
        (Quota::BuildMinutes, minutes(&world.store, organization, now)?),
        (Quota::ImageBytes, usage::usage(&world.store, organization)?.of(Quota::ImageBytes)),
    ];
    for (quota, used) in used {
        if usage::limit(world, organization, quota)?.is_some_and(|limit| used >= limit) {
            return Err(Fault::OverQuota(usage::told(world, organization, quota, used)?));
        }
    }
    Ok(())
}

/// How many bytes the log of a build may have.
pub(super) fn log_room(world: &World, organization: OrganizationId) -> Result<u64, Fault> {
    let left = usage::left(world, organization, Quota::LogBytes)?;
    Ok(left.unwrap_or(u64::MAX).max(ALWAYS_KEPT))
}

/// Counts the minutes of a build from now on, however it ends: also one that was cancelled had this machine.
pub(super) struct Meter<'a> {
    world: &'a World,
    organization: OrganizationId,
    began: Timestamp,
    /// Whether it did not come to its end, for no reason of its own.
    is_tried_again: bool,
}

impl<'a> Meter<'a> {
    pub fn begin(world: &'a World, organization: OrganizationId) -> Self {
        Meter { world, organization, began: world.ports.clock.now(), is_tried_again: false }
    }

    /// The build did not come to its end, for no reason of its own. Only whole minutes count.
    pub fn set_tried_again(&mut self) {
        self.is_tried_again = true;
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let (now, site) = (self.world.ports.clock.now(), &self.world.ports.site);
        // No build takes longer: the clock may have jumped meanwhile.
        let took = now.since(self.began).min(site.deployment_limit);
        let minutes = match self.is_tried_again {
            true => took.as_secs() / 60,
            false => took.as_secs().div_ceil(60).max(1),
        };
        let delta = BuildMinutes { until: now.end_of_month(), minutes };
        self.world.store.note_merge::<BuildMinutes>(&self.organization, delta);
    }
}

/// Tells an app how large the images are that its deployments built.
pub async fn measure_images(world: &World, app: AppId) -> Result<(), EngineError> {
    let mut labels = names::of_installation(&world.ports.site.installation);
    labels.insert(APP.to_owned(), app.to_string());
    let images = world.hosts.own().engine.images(&labels).await?;
    tell(world, app, images.iter().map(|image| image.size).sum()).await;
    Ok(())
}

/// Tells an app how large its images are.
pub async fn tell(world: &World, app: AppId, bytes: u64) {
    let command = apps::Command::MeasureImages(bytes);
    if let Err(fault) = world.to::<Apps>(app).ask_if_there(command).await {
        tracing::warn!(%app, error = %fault, "an app was not told how large its images are");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_count_within_their_month() {
        let month =
            |until: i64, minutes| BuildMinutes { until: Timestamp::from_millis(until), minutes };
        let merge = |old, delta| BuildMinutes::merge(old, &delta);
        assert_eq!(merge(None, month(1, 3)), Some(month(1, 3)));
        assert_eq!(merge(Some(month(1, 3)), month(1, 4)), Some(month(1, 7)));
        assert_eq!(merge(Some(month(1, 3)), month(2, 4)), Some(month(2, 4)), "a new month");
        assert_eq!(merge(Some(month(2, 3)), month(1, 4)), Some(month(2, 3)), "the clock went back");
    }
}
