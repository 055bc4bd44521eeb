//! Measures what instances hold on the disk of the engine's machine, and stops those of organizations that
//! hold more than their quota: what an instance has written already cannot be refused any more.

use super::{acts, instances};
use crate::{
    kinds::{
        hosting::{
            engines::Host,
            instances::{
                Command, Instance, InstanceIndex, Instances, container_spec::UNMEASURED_BYTES,
            },
            names,
        },
        people::usage,
        world::World,
    },
    runtime::resource::Row,
};
use container_engine::DiskUse;
use contract::{Fault, InstanceId, OrganizationId, operators::DiskUsage, quotas::Quota};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// What instances hold is written down in steps of so many bytes, so that one at rest writes nothing.
const STEP: u64 = 1 << 20;

/// An instance with a quota that grew by so many bytes since the last measurement is stopped while the disk of the
/// engine is nearly full, so that all others have what is left.
const MUCH: u64 = 256 << 20;

/// It is measured in one of so many rounds, and more often while the disk is nearly full.
const ROUNDS: u32 = 30;
const ROUNDS_WHILE_FULL: u32 = 6;

/// Measures now, and then at intervals of rounds, which a clock that jumps does not change.
pub(super) async fn keep_measuring(world: &World, host: &Host, round: Duration) {
    let mut waited = ROUNDS;
    let mut is_first = true;
    loop {
        let is_full = has_no_room(world, host);
        if waited >= if is_full { ROUNDS_WHILE_FULL } else { ROUNDS } {
            waited = 0;
            match measure(world, host, is_first).await {
                Ok(()) => is_first = false,
                Err(fault) => {
                    tracing::warn!(error = %fault, "it is not known what instances hold on the disk");
                }
            }
        }
        world.ports.clock.sleep(round).await;
        waited += 1;
    }
}

/// Whether the disk of the data directory or that of the engine is nearly full.
fn has_no_room(world: &World, host: &Host) -> bool {
    let own = host.id.is_none().then(|| world.ports.machine.check_room(0));
    own.is_some_and(|room| room.is_err()) || host.health.check_room(0).is_err()
}

/// Measures what all instances of an engine hold, and judges them. The first measurement after a start does not say
/// how fast they grow.
async fn measure(world: &World, host: &Host, is_first: bool) -> Result<(), Fault> {
    let all = instances(world, host)?;
    if all.is_empty() {
        host.health.set_disk(None);
        return Ok(());
    }
    let labels = names::of_installation(&world.ports.site.installation);
    let held = match host.engine.disk_use(&labels).await {
        Ok(found) => {
            let disk =
                found.disk.map(|disk| DiskUsage { bytes: disk.bytes, free_bytes: disk.free });
            // Where no volume could be read, the last figures hold.
            if disk.is_some() || found.volumes.is_empty() {
                host.health.set_disk(disk);
            }
            by_instance(&found)
        }
        // A disk without room for one more container is judged by the last figures.
        Err(error) if has_no_room(world, host) => {
            tracing::warn!(%error, "it is not known what instances hold on the disk");
            all.iter().map(|(id, _)| (*id, Sum::UNKNOWN)).collect()
        }
        Err(error) => return Err(Fault::NotNow(error.to_string())),
    };
    if !acts(world) {
        return Ok(());
    }
    let is_full = has_no_room(world, host);
    let mut elsewhere = elsewhere(world, host)?;
    let mut organizations: BTreeMap<OrganizationId, Vec<Measured>> = BTreeMap::new();
    for (id, seen) in &all {
        let sum = held.get(id).copied().unwrap_or_default();
        if sum.is_part {
            tracing::warn!(%id, "not all that an instance holds on the disk could be measured");
        }
        let mut measured = Measured::of(*id, &seen.state, sum);
        if is_first {
            measured.grown = 0;
        }
        if seen.disk_bytes != Some(measured.bytes) {
            tell(world, *id, Command::Measure(measured.bytes)).await;
        }
        if let Some(organization) = Instances::organization(id, &seen.state, &world.store)? {
            organizations.entry(organization).or_default().push(measured);
        }
    }
    for (organization, measured) in organizations {
        let others = elsewhere.remove(&organization).unwrap_or_default();
        let used = others + measured.iter().map(|instance| instance.bytes).sum::<u64>();
        let limit = usage::limit(world, organization, Quota::InstanceDisk)?;
        let mut all = measured.clone();
        all.extend(measured.first().map(|first| first.elsewhere(others)));
        let of_quota = judge(&all, limit, is_full);
        let of_growth = judge_growth(&measured, limit, host.health.check_room(0).is_err());
        for (id, verdict) in of_quota.into_iter().chain(of_growth) {
            let command = match verdict {
                Verdict::Hold => {
                    Command::Hold(usage::told(world, organization, Quota::InstanceDisk, used)?)
                }
                Verdict::Release => Command::Release,
                Verdict::AwaitRoom => Command::AwaitRoom,
                Verdict::FindRoom => Command::FindRoom,
            };
            tell(world, id, command).await;
        }
    }
    Ok(())
}

/// What the instances of each organization hold at other engines, as it was measured last.
fn elsewhere(world: &World, host: &Host) -> Result<BTreeMap<OrganizationId, u64>, Fault> {
    let mut held = BTreeMap::new();
    for found in world.store.newest(&InstanceIndex::All, None) {
        let (id, seen) = found?;
        if seen.engine == host.id {
            continue;
        }
        if let Some(organization) = Instances::organization(&id, &seen.state, &world.store)? {
            let bytes = seen.disk_bytes.unwrap_or(UNMEASURED_BYTES);
            *held.entry(organization).or_default() += bytes;
        }
    }
    Ok(held)
}

async fn tell(world: &World, id: InstanceId, command: Command) {
    if let Err(fault) = world.to::<Instances>(id).ask_if_there(command).await {
        tracing::warn!(%id, error = %fault, "an instance was not told what it holds on the disk");
    }
}

/// What the volumes and containers of an instance hold together, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    known: u64,
    /// Whether some of them could not be measured.
    is_part: bool,
}

impl Sum {
    const UNKNOWN: Sum = Sum { known: 0, is_part: true };
}

fn by_instance(found: &DiskUse) -> HashMap<InstanceId, Sum> {
    let mut held: HashMap<InstanceId, Sum> = HashMap::new();
    for (name, bytes) in found.volumes.iter().chain(&found.containers) {
        if let Some(id) = names::instance_of(name) {
            let sum = held.entry(id).or_default();
            sum.known += bytes.unwrap_or_default();
            sum.is_part |= bytes.is_none();
        }
    }
    held
}

/// What an instance holds on the disk.
#[derive(Debug, Clone, Copy)]
struct Measured {
    id: InstanceId,
    bytes: u64,
    /// Whether that is more than before, or may be.
    grew: bool,
    /// By how much it is known to be more than at the measurement before.
    grown: u64,
    /// Whether it could run.
    exists: bool,
    held: bool,
    awaits_room: bool,
}

impl Measured {
    /// What the organization holds at other engines, which judge of it themselves.
    fn elsewhere(self, bytes: u64) -> Measured {
        let (grew, exists, held, awaits_room) = (false, false, false, false);
        Measured { bytes, grew, grown: 0, exists, held, awaits_room, ..self }
    }

    /// Of a part, an instance holds at least what it held before.
    fn of(id: InstanceId, seen: &Instance, sum: Sum) -> Measured {
        let before = seen.disk_bytes.unwrap_or(UNMEASURED_BYTES);
        let known = sum.known.next_multiple_of(STEP);
        let bytes = if sum.is_part { known.max(before) } else { known };
        Measured {
            id,
            bytes,
            grew: sum.is_part || bytes > before,
            grown: seen.disk_bytes.map_or(0, |before| bytes.saturating_sub(before)),
            exists: !seen.is_deleted(),
            held: seen.held.is_some(),
            awaits_room: seen.awaits_room,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Hold,
    Release,
    AwaitRoom,
    FindRoom,
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

/// What becomes of instances that grow by [`MUCH`] while the disk is nearly full, also within the limit of their
/// organization: all limits together can be more than the disk has. They wait until there is room. Where an operator
/// set no limit, they may grow.
fn judge_growth(
    instances: &[Measured],
    limit: Option<u64>,
    is_full: bool,
) -> Vec<(InstanceId, Verdict)> {
    let verdict = if is_full { Verdict::AwaitRoom } else { Verdict::FindRoom };
    let meant = instances.iter().filter(|instance| match is_full {
        true => instance.exists && instance.grown >= MUCH && limit.is_some(),
        false => instance.awaits_room,
    });
    meant.map(|instance| (instance.id, verdict)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{AwaitRoom, FindRoom, Hold, Release};
    use contract::Id;
    use ulid::Ulid;

    fn instance(id: u128, bytes: u64) -> Measured {
        let id = InstanceId::of(Ulid(id));
        let (grew, exists, held, awaits_room) = (false, true, false, false);
        Measured { id, bytes, grew, grown: 0, exists, held, awaits_room }
    }

    #[test]
    fn on_a_full_disk_what_grows_much_is_stopped_until_there_is_room() {
        let [rests, grows] = [instance(1, 10), instance(2, MUCH)];
        let grows = Measured { grew: true, grown: MUCH, ..grows };
        let (all, limit) = ([rests, grows], Some(1 << 40));
        assert_eq!(judge_growth(&all, limit, false), []);
        assert_eq!(judge_growth(&all, limit, true), [(grows.id, AwaitRoom)]);
        assert_eq!(judge_growth(&all, None, true), [], "an operator said that it may");
        let waits = Measured { grown: MUCH - 1, awaits_room: true, ..grows };
        assert_eq!(judge_growth(&[rests, waits], limit, true), [], "there is no room yet");
        assert_eq!(judge_growth(&[rests, waits], limit, false), [(waits.id, FindRoom)]);
        assert_eq!(judge(&[rests, waits], limit, false), [], "its quota did not stop it");
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
