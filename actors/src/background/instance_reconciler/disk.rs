//! Measures what instances hold on the disk of the engine's machine, and stops those of organizations that
//! hold more than their quota: what an instance has written already cannot be refused any more.

use super::instances;
use crate::{
    kinds::{
        hosting::{
            instances::{Command, Instance, Instances},
            names,
        },
        people::usage,
        world::World,
    },
    runtime::resource::Row,
};
use container_engine::{DiskUse, EngineError};
use contract::{Fault, InstanceId, OrganizationId, Timestamp, quotas::Quota};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

/// What instances hold is written down in steps of so many bytes, so that one at rest writes nothing.
const STEP: u64 = 1 << 20;

/// Measures after each `every`, and in each round while the disk is nearly full.
pub(super) async fn keep(world: Arc<World>, every: Duration, round: Duration) {
    let mut measured_at: Option<Timestamp> = None;
    loop {
        let now = world.ports.clock.now();
        let is_full = world.ports.machine.check_room(0).is_err();
        if is_full || measured_at.is_none_or(|at| now.since(at) >= every) {
            match measure(&world, is_full).await {
                Ok(()) => measured_at = Some(now),
                Err(fault) => {
                    tracing::warn!(error = %fault, "what instances hold on the disk is not known")
                }
            }
        }
        world.ports.clock.sleep(round).await;
    }
}

async fn measure(world: &World, is_full: bool) -> Result<(), Fault> {
    let all = instances(world)?;
    if all.is_empty() {
        return Ok(());
    }
    let labels = names::of_installation(&world.ports.site.installation);
    let found = world.ports.engine.disk_use(&labels).await.map_err(unknown)?;
    let held = by_instance(&found);
    let mut organizations: BTreeMap<OrganizationId, Vec<Measured>> = BTreeMap::new();
    for (id, seen) in &all {
        let now = held.get(id).copied().unwrap_or(Some(0));
        let now = now.map(|bytes| bytes.next_multiple_of(STEP));
        match now {
            None => tracing::warn!(%id, "an instance has too many files to measure what it holds"),
            Some(bytes) if seen.disk_bytes != now => {
                tell(world, *id, Command::Measure(bytes)).await;
            }
            Some(_) => {}
        }
        let bytes = now.or(seen.disk_bytes).unwrap_or_default();
        if let Some(organization) = Instances::organization(id, &seen.state, &world.store)? {
            organizations
                .entry(organization)
                .or_default()
                .push(Measured::of((*id, &seen.state), bytes));
        }
    }
    for (organization, measured) in organizations {
        let used = measured.iter().map(|instance| instance.bytes).sum();
        let found = usage::limit(world, organization, Quota::InstanceDisk, used)?;
        let (limit, why) = found.unzip();
        for (id, verdict) in judge(&measured, limit, is_full) {
            let command = match verdict {
                Verdict::Hold => Command::Hold(why.clone().unwrap_or_default()),
                Verdict::Release => Command::Release,
            };
            tell(world, id, command).await;
        }
    }
    Ok(())
}

fn unknown(error: EngineError) -> Fault {
    Fault::NotNow(error.to_string())
}

async fn tell(world: &World, id: InstanceId, command: Command) {
    if let Err(fault) = world.to::<Instances>(id).ask_if_there(command).await {
        tracing::warn!(%id, error = %fault, "an instance was not told what it holds on the disk");
    }
}

/// What each instance holds, in bytes. `None`: it has too many files.
fn by_instance(found: &DiskUse) -> HashMap<InstanceId, Option<u64>> {
    let mut held: HashMap<InstanceId, Option<u64>> = HashMap::new();
    for (name, bytes) in found.volumes.iter().chain(&found.containers) {
        if let Some(id) = names::instance_of(name) {
            let sum = held.entry(id).or_insert(Some(0));
            *sum = sum.zip(*bytes).map(|(sum, bytes)| sum + bytes);
        }
    }
    held
}

/// What an instance holds on the disk.
#[derive(Debug, Clone, Copy)]
struct Measured {
    id: InstanceId,
    bytes: u64,
    /// Whether that is more than before.
    grew: bool,
    /// Whether it could run.
    exists: bool,
    held: bool,
}

impl Measured {
    fn of((id, seen): (InstanceId, &Instance), bytes: u64) -> Measured {
        Measured {
            id,
            bytes,
            grew: seen.disk_bytes.is_some_and(|before| bytes > before),
            exists: !seen.is_deleted(),
            held: seen.held.is_some(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Hold,
    Release,
}

/// What becomes of the instances of one organization. One that holds a quarter more than its limit, or more
/// than its limit on a disk that is nearly full, loses the largest instance, and each that still grows.
fn judge(instances: &[Measured], limit: Option<u64>, is_full: bool) -> Vec<(InstanceId, Verdict)> {
    let used: u64 = instances.iter().map(|instance| instance.bytes).sum();
    let Some(limit) = limit.filter(|limit| used > *limit) else {
        let held = instances.iter().filter(|instance| instance.held);
        return held.map(|instance| (instance.id, Verdict::Release)).collect();
    };
    let most = if is_full { limit } else { limit.saturating_add(limit / 4) };
    if used <= most {
        return Vec::new();
    }
    let exist = || instances.iter().filter(|instance| instance.exists);
    let largest = exist().max_by_key(|instance| instance.bytes).map(|instance| instance.id);
    let go = exist().filter(|instance| instance.grew || Some(instance.id) == largest);
    go.filter(|instance| !instance.held).map(|instance| (instance.id, Verdict::Hold)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Hold, Release};
    use contract::Id;
    use ulid::Ulid;

    fn instance(id: u128, bytes: u64) -> Measured {
        let id = InstanceId::of(Ulid(id));
        Measured { id, bytes, grew: false, exists: true, held: false }
    }

    #[test]
    fn an_organization_over_its_limit_loses_the_largest_and_what_grows() {
        let [small, large, grows] = [instance(1, 10), instance(2, 80), instance(3, 40)];
        let grows = Measured { grew: true, ..grows };
        let (all, both) = ([small, large, grows], vec![(large.id, Hold), (grows.id, Hold)]);
        assert_eq!(judge(&all, Some(130), false), []);
        assert_eq!(judge(&all, Some(110), false), [], "a quarter more passes");
        assert_eq!(judge(&all, Some(110), true), both, "not on a full disk");
        assert_eq!(judge(&all, Some(100), false), both);
        assert_eq!(judge(&all, None, true), []);
        // What is kept of deleted ones counts.
        let deleted = Measured { exists: false, ..large };
        assert_eq!(judge(&[small, deleted], Some(50), false), [(small.id, Hold)]);
        let held = Measured { held: true, ..large };
        assert_eq!(judge(&[small, held], Some(50), false), [], "the others go on");
        assert_eq!(judge(&[small, held], Some(80), false), [], "it still holds too much");
        assert_eq!(judge(&[small, held], Some(90), false), [(held.id, Release)]);
        assert_eq!(judge(&[small, held], None, true), [(held.id, Release)]);
    }
}
