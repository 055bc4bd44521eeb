//! What to do next for an instance, from what was asked for and what is seen. Pure.

use crate::kinds::instances::record::{Incarnation, Instance, Part};
use contract::{
    Timestamp,
    instances::{DesiredState, InstanceState, Role, ServiceHealth, ServiceState},
};
use std::{collections::BTreeMap, time::Duration};

/// What was seen of an instance's containers, by role and generation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// Those that are there.
    pub containers: BTreeMap<(Role, u32), Seen>,
}

/// What was seen of one container.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Whether it runs.
    pub state: ServiceState,
    /// What its health check says now.
    pub health: ServiceHealth,
    /// Where it is reached on the loopback address.
    pub port: Option<u16>,
    /// When it was last started.
    pub started_at: Option<Timestamp>,
    /// How it ended, in words, where it did.
    pub ending: Option<String>,
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Make the container, and all that it needs.
    Provision(Role, u32),
    /// Start it.
    Start(Role, u32),
    /// Stop it.
    Stop(Role, u32),
    /// Stop it and remove it.
    Remove(Role, u32),
    /// The candidate serves from now on.
    Switch(Role),
    /// The candidate will not do.
    Reject(Role, String),
    /// The candidate that will not do is gone.
    Dismiss(Role),
    /// It did not come up.
    GiveUp(Role, String),
    /// It served, and came to its end by itself.
    Crashed(Role, String),
    /// Remove every container, the network, and the volumes where they are to go.
    Clear,
    /// Look again after this.
    Wait(Duration),
    /// It is as it should be.
    Rest,
}

/// How often a container is started before it is given up.
pub const MOST_ATTEMPTS: u32 = 3;
/// How often in a row a health check must pass.
pub const PASSES: u8 = 2;
/// How long a container that got no new requests may finish those that it has.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How soon something that comes up is looked at again.
const SOON: Duration = Duration::from_millis(250);
/// How soon something that takes its time is looked at again.
const LATER: Duration = Duration::from_secs(1);

/// The next thing to do.
pub fn plan(instance: &Instance, look: &Look, now: Timestamp) -> Act {
    match instance.state {
        InstanceState::Deleting => take_down(instance, look).unwrap_or(Act::Clear),
        InstanceState::Deleted => Act::Clear,
        InstanceState::Failed => tidy(instance, look).unwrap_or(Act::Rest),
        InstanceState::Restarting if !instance.coming_up => {
            take_down(instance, look).unwrap_or(Act::Rest)
        }
        _ if instance.desired == DesiredState::Running => bring_up(instance, look, now),
        _ => take_down(instance, look).unwrap_or(Act::Rest),
    }
}

/// The databases first, each once those before it are well.
fn bring_up(instance: &Instance, look: &Look, now: Timestamp) -> Act {
    let seen = |part: &Part| look.containers.get(&(part.role(), part.live.generation));
    let coming_up =
        instance.state != InstanceState::Running && instance.state != InstanceState::Degraded;
    if !coming_up && let Some(ended) = crashed(instance, look) {
        return ended;
    }
    let needed = || instance.parts.iter().filter(|part| !part.left_out);
    for part in needed() {
        if seen(part).is_none() {
            return Act::Provision(part.role(), part.live.generation);
        }
    }
    for part in needed() {
        let (role, generation) = (part.role(), part.live.generation);
        let Some(seen) = seen(part) else { continue };
        let late = coming_up && instance.deadline.is_some_and(|deadline| now >= deadline);
        match seen.state {
            ServiceState::Created => return Act::Start(role, generation),
            ServiceState::Exited if part.attempts >= MOST_ATTEMPTS => {
                let how = seen.ending.as_deref().unwrap_or("ended");
                return Act::GiveUp(role, format!("it {how}, {MOST_ATTEMPTS} times in a row"));
            }
            ServiceState::Exited => match too_soon(part, seen, now) {
                Some(pause) => return Act::Wait(pause),
                None => return Act::Start(role, generation),
            },
            ServiceState::Missing if coming_up => return Act::Wait(LATER),
            ServiceState::Missing => {}
            ServiceState::Running if !coming_up || settled(&part.live, seen) => {}
            ServiceState::Running if late => {
                return Act::GiveUp(role, "it did not become well in time".into());
            }
            ServiceState::Running => return Act::Wait(pause(seen, now)),
        }
    }
    if coming_up {
        return Act::Rest;
    }
    for part in &instance.parts {
        if let Some(act) = replace(part, look, now).or_else(|| retire(part, look, now)) {
            return act;
        }
    }
    Act::Rest
}

/// The first service that came to its end by itself.
fn crashed(instance: &Instance, look: &Look) -> Option<Act> {
    instance.parts.iter().filter(|part| !part.left_out).find_map(|part| {
        let role = part.role();
        match look.containers.get(&(role, part.live.generation)) {
            None => Some(Act::Crashed(role, "was removed from outside".into())),
            Some(Seen { state: ServiceState::Running | ServiceState::Missing, .. }) => None,
            Some(seen) => {
                let how = seen.ending.clone().unwrap_or_else(|| "ended".into());
                Some(Act::Crashed(role, how))
            }
        }
    })
}

/// Whether a container that comes up is well, this look included.
fn settled(incarnation: &Incarnation, seen: &Seen) -> bool {
    seen.health == ServiceHealth::Healthy && incarnation.passes + 1 >= PASSES
}

/// A container that ended is not started again at once: what it needs may not be there yet.
fn too_soon(part: &Part, seen: &Seen, now: Timestamp) -> Option<Duration> {
    let pause = if part.attempts == 0 { 0 } else { 2_u64 << part.attempts.min(6) };
    let left = Duration::from_secs(pause).saturating_sub(now.since(seen.started_at?));
    (!left.is_zero()).then_some(left)
}

/// What was just started is looked at often.
fn pause(seen: &Seen, now: Timestamp) -> Duration {
    let young = seen.started_at.is_none_or(|at| now.since(at) < Duration::from_secs(15));
    if young { SOON } else { LATER }
}

/// The candidate comes up beside the one that serves, and takes its place once it is well.
fn replace(part: &Part, look: &Look, now: Timestamp) -> Option<Act> {
    let candidate = part.candidate.as_ref()?;
    let (role, generation) = (part.role(), candidate.next.generation);
    let seen = look.containers.get(&(role, generation));
    if candidate.failed.is_some() {
        return Some(match seen {
            Some(_) => Act::Remove(role, generation),
            None => Act::Dismiss(role),
        });
    }
    let late = now >= candidate.deadline;
    Some(match seen {
        None => Act::Provision(role, generation),
        Some(seen) => match seen.state {
            ServiceState::Created => Act::Start(role, generation),
            ServiceState::Exited => {
                let how = seen.ending.as_deref().unwrap_or("ended");
                Act::Reject(role, format!("the new container {how}"))
            }
            ServiceState::Running if settled(&candidate.next, seen) => Act::Switch(role),
            _ if late => Act::Reject(role, "the new container did not become well in time".into()),
            _ => Act::Wait(pause(seen, now)),
        },
    })
}

/// Those that served before go, once they had time to finish.
fn retire(part: &Part, look: &Look, now: Timestamp) -> Option<Act> {
    let retired = part.retired.first()?;
    let there = look.containers.contains_key(&(part.role(), retired.generation));
    let left = DRAIN.saturating_sub(now.since(retired.since));
    if there && !left.is_zero() {
        return Some(Act::Wait(left));
    }
    Some(Act::Remove(part.role(), retired.generation))
}

/// What serves stops in the reverse order: nobody loses a database that it still uses. What does
/// not serve goes first.
fn take_down(instance: &Instance, look: &Look) -> Option<Act> {
    let running = |seen: &Seen| matches!(seen.state, ServiceState::Running | ServiceState::Missing);
    tidy(instance, look).or_else(|| {
        instance.parts.iter().rev().find_map(|part| {
            let key = (part.role(), part.live.generation);
            let stop = look.containers.get(&key).is_some_and(running);
            stop.then_some(Act::Stop(key.0, key.1))
        })
    })
}

/// Removes all containers but those that serve.
fn tidy(instance: &Instance, look: &Look) -> Option<Act> {
    instance.parts.iter().find_map(|part| {
        let role = part.role();
        if let Some(candidate) = &part.candidate {
            let generation = candidate.next.generation;
            return Some(if look.containers.contains_key(&(role, generation)) {
                Act::Remove(role, generation)
            } else {
                Act::Dismiss(role)
            });
        }
        part.retired.first().map(|retired| Act::Remove(role, retired.generation))
    })
}
