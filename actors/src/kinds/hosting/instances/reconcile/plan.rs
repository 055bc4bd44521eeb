//! Decides the next action of an instance from its record and what was observed. Pure.

use super::observe::{Observation, ObservedContainer};
use crate::kinds::hosting::instances::{
    record::Instance,
    service::{Revision, Service},
};
use contract::{
    EngineId, Timestamp,
    instances::{DesiredState, InstanceState, Role, ServiceHealth, ServiceState},
};
use std::time::Duration;

/// The next action. A container is named by its role and generation.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create the container, and the network, volume and image that it needs.
    Provision(Role, u32),
    Start(Role, u32),
    /// Give the restore of the initial backup its deadline.
    BeginRestore(Role),
    /// Restore the initial backup into this database.
    Restore(Role),
    Stop(Role, u32),
    /// Stop the container and remove it.
    Remove(Role, u32),
    /// Make the candidate the live revision.
    Switch(Role),
    /// Mark the candidate as failed.
    Reject(Role, String),
    /// Drop the failed candidate from the record: its container is removed.
    Dismiss(Role),
    /// Stop trying to start the live revision.
    GiveUp(Role, String),
    /// Record that the live revision ended by itself.
    Crashed(Role, String),
    /// Remove all containers and the network, and with `delete_data` the volumes.
    Clear,
    /// Have the image of a service at the engine that the instance moves to.
    Prepare(Role),
    /// Stop, to move.
    Halt,
    /// Give the copy of a volume its deadline.
    BeginCopy(Role),
    /// Copy the volume of a service to the engine that the instance moves to.
    Copy(Role),
    /// Be at the engine that the instance moves to.
    Arrive,
    /// Remove what the instance left at this engine.
    Forget(Option<EngineId>),
    /// Observe again after a pause.
    Wait(Duration),
    /// The instance is as desired.
    Rest,
}

/// How often a container is started, and a backup restored, before the instance gives up.
pub const MOST_ATTEMPTS: u32 = 3;
/// How many consecutive observations must find a new container healthy.
pub const PASSES: u8 = 2;
/// How long a retired container may finish its requests.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How long a container counts as just started.
const YOUNG: Duration = Duration::from_secs(15);
/// The pause before a container that was just started is observed again.
const SOON: Duration = Duration::from_millis(100);
/// The pause before a container that takes longer is observed again.
const LATER: Duration = Duration::from_secs(1);

/// What members can do when a volume with data is gone.
const VOLUME_GONE: &str = "the volume with its data is gone from this machine. Bring it back, and start \
    the instance. Or start it with `acceptDataLoss`, which makes an empty volume, and restore a backup";

/// The next action: at its engine, and if nothing is left to do there, between engines.
pub fn plan(instance: &Instance, observation: &Observation, now: Timestamp) -> Action {
    match at_its_engine(instance, observation, now) {
        Action::Rest => between_engines(instance).unwrap_or(Action::Rest),
        action => action,
    }
}

/// The table in the documentation of [`instances`](crate::kinds::hosting::instances) has one row for each arm.
fn at_its_engine(instance: &Instance, observation: &Observation, now: Timestamp) -> Action {
    match instance.state {
        InstanceState::Deleting => take_down(instance, observation)
            .or_else(|| left_elsewhere(instance))
            .unwrap_or(Action::Clear),
        InstanceState::Deleted => Action::Clear,
        InstanceState::Failed => remove_all_but_live(instance, observation).unwrap_or(Action::Rest),
        InstanceState::Restarting if !instance.coming_up => {
            take_down(instance, observation).unwrap_or(Action::Rest)
        }
        _ if instance.desired == DesiredState::Running => bring_up(instance, observation, now),
        _ => take_down(instance, observation).unwrap_or(Action::Rest),
    }
}

/// Where a deleted instance whose data goes has volumes still.
fn left_elsewhere(instance: &Instance) -> Option<Action> {
    let left = instance.left_behind.first().filter(|_| instance.delete_data)?;
    Some(Action::Forget(left.engine))
}

/// The next step of a move, of an instance that has come to rest: the images first, while it serves. Then it stops, and
/// its volumes are copied. What it left elsewhere is removed when its time is over.
fn between_engines(instance: &Instance) -> Option<Action> {
    use InstanceState::{Degraded, Failed, Restarting, Running, Stopped};
    let is_down = match instance.state {
        Running | Degraded | Failed => false,
        Stopped => true,
        Restarting if !instance.coming_up => true,
        _ => return None,
    };
    let Some(moving) = &instance.moving else {
        let mut over = instance.left_behind.iter().filter(|left| left.until.is_none());
        return over.next().map(|left| Action::Forget(left.engine));
    };
    let unprepared = |service: &&Service| !moving.prepared.contains(&service.role);
    if let Some(service) = instance.services.iter().find(unprepared) {
        return Some(Action::Prepare(service.role));
    }
    if !is_down {
        return Some(Action::Halt);
    }
    let to_copy = |service: &&Service| {
        service.live.template().volume.is_some() && !moving.copied.contains(&service.role)
    };
    Some(match instance.services.iter().find(to_copy) {
        Some(service) if moving.copying == Some(service.role) => Action::Copy(service.role),
        Some(service) => Action::BeginCopy(service.role),
        None => Action::Arrive,
    })
}

/// Creates all containers, then starts the services in order: each once those before it are
/// healthy. In an instance that is up, replaces revisions.
fn bring_up(instance: &Instance, observation: &Observation, now: Timestamp) -> Action {
    let is_up = matches!(instance.state, InstanceState::Running | InstanceState::Degraded);
    if is_up && let Some(crashed) = crashed(instance, observation) {
        return crashed;
    }
    let needed = || instance.services.iter().filter(|service| !service.left_out);
    if let Some(service) = needed().find(|s| observation.without_volume.contains(&s.role)) {
        return Action::GiveUp(service.role, VOLUME_GONE.into());
    }
    for service in needed() {
        if observation.get(service.role, service.live.generation).is_none() {
            return Action::Provision(service.role, service.live.generation);
        }
    }
    let late = !is_up && instance.deadline.is_some_and(|deadline| now >= deadline);
    for service in needed() {
        let (role, generation) = (service.role, service.live.generation);
        let Some(observed) = observation.get(role, generation) else { continue };
        match observed.state {
            ServiceState::Created => return Action::Start(role, generation),
            ServiceState::Exited if service.attempts >= MOST_ATTEMPTS => {
                let how = observed.ending.as_deref().unwrap_or("ended");
                return Action::GiveUp(role, format!("it {how}, {MOST_ATTEMPTS} times in a row"));
            }
            ServiceState::Exited => match backoff(service, observed, now) {
                Some(pause) => return Action::Wait(pause),
                None => return Action::Start(role, generation),
            },
            ServiceState::Missing if is_up => {}
            ServiceState::Missing => return Action::Wait(LATER),
            ServiceState::Running if is_up || has_passed(&service.live, observed) => {}
            ServiceState::Running if late => {
                return Action::GiveUp(role, "it did not become healthy in time".into());
            }
            ServiceState::Running => return Action::Wait(poll_pause(observed, now)),
        }
        match &instance.initial_restore {
            Some(restore) if restore.role != role => {}
            Some(restore) if restore.begun => return Action::Restore(role),
            Some(_) => return Action::BeginRestore(role),
            None => {}
        }
    }
    if !is_up {
        return Action::Rest;
    }
    let replacement = |service: &Service| {
        replace(service, observation, now).or_else(|| drain(service, observation, now))
    };
    instance.services.iter().find_map(replacement).unwrap_or(Action::Rest)
}

/// The first service whose live container ended by itself.
fn crashed(instance: &Instance, observation: &Observation) -> Option<Action> {
    let needed = instance.services.iter().filter(|service| !service.left_out);
    needed.into_iter().find_map(|service| {
        let how = match observation.get(service.role, service.live.generation) {
            None => "was removed from outside".into(),
            Some(ObservedContainer {
                state: ServiceState::Running | ServiceState::Missing,
                ..
            }) => return None,
            Some(observed) => observed.ending.clone().unwrap_or_else(|| "ended".into()),
        };
        Some(Action::Crashed(service.role, how))
    })
}

/// Whether a starting container was healthy often enough, this observation included.
fn has_passed(revision: &Revision, observed: &ObservedContainer) -> bool {
    observed.health == ServiceHealth::Healthy && revision.passes + 1 >= PASSES
}

/// The rest of the pause before a container that ended is started again: what it needs may not be
/// ready yet.
fn backoff(service: &Service, observed: &ObservedContainer, now: Timestamp) -> Option<Duration> {
    let pause = if service.attempts == 0 { 0 } else { 2_u64 << service.attempts.min(6) };
    let left = Duration::from_secs(pause).saturating_sub(now.since(observed.started_at?));
    (!left.is_zero()).then_some(left)
}

fn poll_pause(observed: &ObservedContainer, now: Timestamp) -> Duration {
    if is_young(observed.started_at, now) { SOON } else { LATER }
}

/// Whether a container was just started.
pub fn is_young(started_at: Option<Timestamp>, now: Timestamp) -> bool {
    started_at.is_none_or(|at| now.since(at) < YOUNG)
}

/// The candidate starts beside the live revision and replaces it once it is healthy.
fn replace(service: &Service, observation: &Observation, now: Timestamp) -> Option<Action> {
    let candidate = service.candidate.as_ref()?;
    let (role, generation) = (service.role, candidate.revision.generation);
    let observed = observation.get(role, generation);
    if candidate.failed.is_some() {
        return Some(match observed {
            Some(_) => Action::Remove(role, generation),
            None => Action::Dismiss(role),
        });
    }
    let Some(observed) = observed else { return Some(Action::Provision(role, generation)) };
    let late = now >= candidate.deadline;
    Some(match observed.state {
        ServiceState::Created => Action::Start(role, generation),
        ServiceState::Exited => {
            let how = observed.ending.as_deref().unwrap_or("ended");
            Action::Reject(role, format!("the new container {how}"))
        }
        ServiceState::Running if has_passed(&candidate.revision, observed) => Action::Switch(role),
        _ if late => {
            Action::Reject(role, "the new container did not become healthy in time".into())
        }
        _ => Action::Wait(poll_pause(observed, now)),
    })
}

/// Removes the oldest retired container once it had time to finish its requests.
fn drain(service: &Service, observation: &Observation, now: Timestamp) -> Option<Action> {
    let retired = service.retired.first()?;
    let exists = observation.get(service.role, retired.generation).is_some();
    let left = DRAIN.saturating_sub(now.since(retired.since));
    Some(if exists && !left.is_zero() {
        Action::Wait(left)
    } else {
        Action::Remove(service.role, retired.generation)
    })
}

/// Removes candidates and retired containers, then stops the services in reverse order: a server
/// stops before the database that it uses.
fn take_down(instance: &Instance, observation: &Observation) -> Option<Action> {
    remove_all_but_live(instance, observation).or_else(|| {
        instance.services.iter().rev().find_map(|service| {
            let (role, generation) = (service.role, service.live.generation);
            let state = observation.get(role, generation)?.state;
            matches!(state, ServiceState::Running | ServiceState::Missing)
                .then_some(Action::Stop(role, generation))
        })
    })
}

fn remove_all_but_live(instance: &Instance, observation: &Observation) -> Option<Action> {
    instance.services.iter().find_map(|service| {
        let role = service.role;
        if let Some(candidate) = &service.candidate {
            let generation = candidate.revision.generation;
            return Some(match observation.get(role, generation) {
                Some(_) => Action::Remove(role, generation),
                None => Action::Dismiss(role),
            });
        }
        service.retired.first().map(|retired| Action::Remove(role, retired.generation))
    })
}
