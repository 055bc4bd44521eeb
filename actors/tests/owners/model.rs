//! A model of an instance: its record with the pending effect, the containers of the engine, and what may
//! happen to both.

use super::scene;
use actors::{
    kinds::hosting::instances::{
        Action, Command, Effect, Instances, Observation, ObservedContainer, Outcome, plan,
    },
    runtime::{
        entries::due,
        resource::{Begins, Input, Kept, Moment, step},
    },
};
use contract::{
    Id, InstanceId, JobId, Timestamp,
    instances::{DesiredState, InstanceState as S, Role, ServiceHealth, ServiceState},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};
use ulid::Ulid;

/// A model of the engine's containers, and the record with its pending effect.
pub struct World {
    id: InstanceId,
    pub now: Timestamp,
    pub containers: BTreeMap<(Role, u32), ObservedContainer>,
    pub kept: Option<Kept<Instances>>,
    /// When the pending effect begins.
    pub due: Timestamp,
    /// Whether the database has the content of the initial backup, or needs none.
    pub restored: bool,
}

impl World {
    pub fn new() -> World {
        let now = Timestamp::from_millis(1_000_000);
        let id = scene::id();
        let kept = Some(Kept { awake: true, ..Kept::at_rest(scene::instance(now)) });
        World { id, now, containers: BTreeMap::new(), kept, due: now, restored: true }
    }

    pub fn from_backup() -> World {
        let mut world = World::new();
        world.kept.as_mut().unwrap().state.initial_restore = Some(scene::initial_restore());
        world.restored = false;
        world
    }

    pub fn take(&mut self, input: Input<Instances>) {
        let Some(kept) = &self.kept else { return };
        let at = Moment::<Instances> { id: self.id, now: self.now };
        let Ok(step) = step(&at, Some(kept), input) else { return };
        if let Begins::After(pause) = step.begins {
            self.due = self.now + pause;
        }
        self.kept = step.apply(Some(kept)).unwrap();
    }

    /// Tells the owner that something is due, if it is.
    pub fn tell_due(&mut self) {
        if self.kept.as_ref().and_then(due).is_some_and(|due| due <= self.now) {
            self.take(Input::Due);
        }
    }

    /// Carries out an action on the containers.
    fn perform(&mut self, action: &Action) {
        let fresh = |now| ObservedContainer {
            state: ServiceState::Running,
            health: ServiceHealth::Healthy,
            port: Some(4000),
            started_at: Some(now),
            ending: None,
        };
        match *action {
            Action::Provision(role, generation) => {
                let made = ObservedContainer {
                    state: ServiceState::Created,
                    health: ServiceHealth::Unknown,
                    port: None,
                    started_at: None,
                    ending: None,
                };
                self.containers.entry((role, generation)).or_insert(made);
            }
            Action::Start(role, generation) => {
                assert!(role != Role::Server || self.restored, "no server without its data");
                self.containers.insert((role, generation), fresh(self.now));
            }
            Action::Restore(role) => {
                let mut servers =
                    self.containers.iter().filter(|((role, _), _)| *role == Role::Server);
                assert!(servers.all(|(_, seen)| seen.started_at.is_none()), "no data is lost");
                let mut database = self.containers.iter().filter(|((of, _), _)| *of == role);
                assert!(database.any(|(_, seen)| seen.state == ServiceState::Running));
                self.restored = true;
            }
            Action::Stop(role, generation) => self.end(role, generation),
            Action::Remove(role, generation) => {
                self.containers.remove(&(role, generation));
            }
            Action::Clear => self.containers.clear(),
            _ => {}
        }
    }

    pub fn end(&mut self, role: Role, generation: u32) {
        if let Some(seen) = self.containers.get_mut(&(role, generation)) {
            seen.state = ServiceState::Exited;
            (seen.health, seen.port) = (ServiceHealth::Unknown, None);
            seen.ending = Some("was killed".into());
        }
    }

    pub fn observation(&self) -> Observation {
        Observation { containers: self.containers.clone(), ..Observation::default() }
    }

    /// Moves the time to `due`, and runs the pending effect as the owner does.
    pub fn work(&mut self, outcome: Fate) {
        let Some(kept) = self.kept.clone() else { return };
        let (Some(Effect::Reconcile), state) = (kept.pending(), kept.state) else { return };
        self.now = self.now.max(self.due);
        if outcome == Fate::Unreachable {
            return self.take(Input::Outcome(Outcome::Waits("the engine")));
        }
        let observation = self.observation();
        let action = plan(&state, &observation, self.now);
        let begins = matches!(action, Action::Provision(..) | Action::Start(..));
        if outcome == Fate::NoTurn && begins {
            return self.take(Input::Outcome(Outcome::NoTurn));
        }
        if let (Fate::Building, Action::Provision(role, generation)) = (outcome, &action) {
            let (role, generation, job) = (*role, *generation, JobId::of(Ulid(8)));
            let building = Outcome::Building { observation, role, generation, job, progress: 20 };
            return self.take(Input::Outcome(building));
        }
        if outcome == Fate::Crash {
            // The action is carried out, but its outcome is lost.
            return self.perform(&action);
        }
        let refused = outcome == Fate::Refused
            && matches!(action, Action::Provision(..) | Action::Start(..) | Action::Restore(_));
        if !refused {
            self.perform(&action);
        }
        let result = if refused { Err("no".into()) } else { Ok(None) };
        self.take(Input::Outcome(Outcome::Reconciled { observation, action, result, log: vec![] }));
    }
}

/// How the effect ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Done,
    Unreachable,
    Crash,
    Refused,
    /// The image is still being built, if the action needs one.
    Building,
    /// Others are before it at the engine, if the action needs a turn.
    NoTurn,
}

#[derive(Debug, Clone)]
pub enum Event {
    Work(Fate),
    Start,
    Stop,
    Restart,
    Delete(bool),
    Undelete,
    /// Its app is deleted.
    Leave,
    /// It comes into another app.
    Move,
    AddStorefront,
    Observe,
    Hold,
    Release,
    AwaitRoom,
    FindRoom,
    Replace(u128),
    Withdraw(u128),
    Update(u32),
    Overdue(u64),
    Kill(usize),
    Vanish(usize),
    Sicken(usize),
}

pub fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Work(Fate::Done)),
        2 => Just(Event::Work(Fate::Unreachable)),
        2 => Just(Event::Work(Fate::Crash)),
        1 => Just(Event::Work(Fate::Refused)),
        1 => Just(Event::Work(Fate::Building)),
        1 => Just(Event::Work(Fate::NoTurn)),
        1 => Just(Event::Start),
        1 => Just(Event::Stop),
        1 => Just(Event::Restart),
        1 => any::<bool>().prop_map(Event::Delete),
        1 => Just(Event::Undelete),
        1 => Just(Event::Leave),
        1 => Just(Event::Move),
        1 => Just(Event::AddStorefront),
        2 => Just(Event::Observe),
        1 => Just(Event::Hold),
        1 => Just(Event::Release),
        1 => Just(Event::AwaitRoom),
        1 => Just(Event::FindRoom),
        2 => (1..4_u128).prop_map(Event::Replace),
        1 => (1..4_u128).prop_map(Event::Withdraw),
        1 => (0..4_u32).prop_map(Event::Update),
        1 => (0..700_u64).prop_map(Event::Overdue),
        1 => (0..4_usize).prop_map(Event::Kill),
        1 => (0..4_usize).prop_map(Event::Vanish),
        1 => (0..4_usize).prop_map(Event::Sicken),
    ]
}

pub fn happen(world: &mut World, event: Event) {
    let nth = |world: &World, n: usize| {
        let count = world.containers.len();
        (count > 0).then(|| *world.containers.keys().nth(n % count).unwrap())
    };
    match event {
        Event::Work(fate) => world.work(fate),
        Event::Start => world.take(Input::Command(scene::START)),
        Event::Stop => world.take(Input::Command(Command::Stop)),
        Event::Restart => world.take(Input::Command(Command::Restart)),
        Event::Delete(data) => world.take(Input::Command(Command::Delete { data })),
        Event::Undelete => world.take(Input::Command(scene::undelete(world.now))),
        Event::Leave => world.take(Input::Command(scene::leave())),
        Event::Move => world.take(Input::Command(scene::undelete_into(world.now))),
        Event::AddStorefront => world.take(Input::Command(scene::add_storefront())),
        Event::Observe => world.take(Input::Command(Command::Observe { lost: vec![] })),
        Event::Hold => world.take(Input::Command(Command::Hold("it is too large".to_owned()))),
        Event::Release => world.take(Input::Command(Command::Release)),
        Event::AwaitRoom => world.take(Input::Command(Command::AwaitRoom)),
        Event::FindRoom => world.take(Input::Command(Command::FindRoom)),
        Event::Replace(n) => world.take(Input::Command(scene::replace(n))),
        Event::Withdraw(n) => {
            let why = "not wanted".to_owned();
            world.take(Input::Command(Command::Withdraw(scene::deployment(n), why)));
        }
        Event::Update(n) => world.take(Input::Command(scene::resize(n))),
        Event::Overdue(seconds) => {
            world.now = world.now + Duration::from_secs(seconds);
            world.tell_due();
        }
        Event::Kill(n) => {
            if let Some((role, generation)) = nth(world, n) {
                world.end(role, generation);
            }
        }
        Event::Vanish(n) => {
            if let Some(key) = nth(world, n) {
                world.containers.remove(&key);
            }
        }
        Event::Sicken(n) => {
            let seen = nth(world, n).and_then(|key| world.containers.get_mut(&key));
            if let Some(seen) = seen.filter(|seen| seen.state == ServiceState::Running) {
                seen.health = ServiceHealth::Unhealthy;
            }
        }
    }
}

/// The invariants of a record.
pub fn check(world: &World, event: &Event) {
    let Some(kept) = &world.kept else {
        assert!(world.containers.is_empty(), "nothing is left behind: {event:?}");
        return;
    };
    let (instance, pending) = (&kept.state, kept.pending());
    let told = format!("{event:?}: {:?} {:?}", instance.state, pending);
    if instance.is_in_transition() {
        assert!(pending.is_some(), "what is on its way goes on: {told}");
    }
    let transient = [S::Provisioning, S::Starting, S::Stopping, S::Restarting, S::Deleting];
    if transient.contains(&instance.state) {
        assert!(instance.deadline.is_some(), "what must end has an end: {told}");
    }
    if instance.held.is_some() || instance.awaits_room {
        assert_ne!(instance.desired, DesiredState::Running, "nothing starts it: {told}");
    }
    if matches!(instance.state, S::Deleting | S::Deleted) {
        assert_eq!(instance.desired, DesiredState::Deleted, "{told}");
    }
    for service in &instance.services {
        let mut generations: Vec<_> = service.retired.iter().map(|r| r.generation).collect();
        generations.push(service.live.generation);
        generations.extend(service.candidate.as_ref().map(|c| c.revision.generation));
        generations.sort_unstable();
        let count = generations.len();
        generations.dedup();
        assert_eq!(generations.len(), count, "each container is one thing: {told}");
        assert!(service.generation >= *generations.last().unwrap(), "{told}");
    }
}

/// Heals the containers, and lets only the time and the reconciler act until the record is at rest.
pub fn until_idle(world: &mut World) {
    let running = |seen: &&mut ObservedContainer| seen.state == ServiceState::Running;
    world.containers.values_mut().filter(running).for_each(|s| s.health = ServiceHealth::Healthy);
    for _ in 0..400 {
        match world.kept.clone() {
            None => return,
            Some(kept) if kept.pending().is_some() => world.work(Fate::Done),
            Some(Kept { state: instance, .. }) => {
                world.take(Input::Command(Command::Observe { lost: vec![] }));
                if world.kept.as_ref().is_some_and(|kept| kept.pending().is_some()) {
                    world.work(Fate::Done);
                }
                let idle = world.kept.as_ref().filter(|kept| kept.pending().is_none());
                let Some(Kept { state: after, .. }) = idle else { continue };
                if after.state == instance.state && after.state != S::Failed {
                    return;
                }
                if let Some(deadline) = after.deadline.filter(|_| after.state == S::Failed) {
                    world.now = world.now.max(deadline);
                    world.tell_due();
                } else if after.state == S::Failed {
                    return;
                }
            }
        }
    }
    let state = world
        .kept
        .as_ref()
        .map(|kept| (kept.state.state, kept.desired, kept.pending(), kept.last_error.clone()));
    panic!("it does not come to rest: {state:?} {:?}", world.containers);
}
