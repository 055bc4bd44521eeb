//! The state machine of an instance under any events in any order: the record keeps its invariants,
//! and when the events end, the instance comes to rest in the desired state.

use super::scene;
use actors::{
    kinds::hosting::instances::{
        Action, Command, Effect, Instances, Observation, ObservedContainer, Outcome, ResolvedImage,
        plan,
    },
    runtime::{
        entries::due,
        resource::{Begins, Input, Kept, Moment, Resource, step},
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
struct World {
    id: InstanceId,
    now: Timestamp,
    containers: BTreeMap<(Role, u32), ObservedContainer>,
    kept: Option<Kept<Instances>>,
    /// When the pending effect begins.
    due: Timestamp,
    /// Whether the database has the content of the initial backup, or needs none.
    restored: bool,
}

impl World {
    fn new() -> World {
        let now = Timestamp::from_millis(1_000_000);
        let id = scene::id();
        let kept = Some(Kept { awake: true, ..Kept::at_rest(scene::instance(now)) });
        World { id, now, containers: BTreeMap::new(), kept, due: now, restored: true }
    }

    fn from_backup() -> World {
        let mut world = World::new();
        world.kept.as_mut().unwrap().state.initial_restore = Some(scene::initial_restore());
        world.restored = false;
        world
    }

    fn take(&mut self, input: Input<Instances>) {
        let Some(kept) = &self.kept else { return };
        let at = Moment::<Instances> { id: self.id, now: self.now };
        let Ok(step) = step(&at, Some(kept), input) else { return };
        if let Begins::After(pause) = step.begins {
            self.due = self.now + pause;
        }
        self.kept = step.apply(Some(kept)).unwrap();
    }

    /// Tells the owner that something is due, if it is.
    fn tell_due(&mut self) {
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

    fn end(&mut self, role: Role, generation: u32) {
        if let Some(seen) = self.containers.get_mut(&(role, generation)) {
            seen.state = ServiceState::Exited;
            (seen.health, seen.port) = (ServiceHealth::Unknown, None);
            seen.ending = Some("was killed".into());
        }
    }

    /// Moves the time to `due`, and runs the pending effect as the owner does.
    fn work(&mut self, outcome: Fate) {
        let Some(kept) = self.kept.clone() else { return };
        let (Some(Effect::Reconcile), state) = (kept.pending(), kept.state) else { return };
        self.now = self.now.max(self.due);
        if outcome == Fate::Unreachable {
            return self.take(Input::Outcome(Outcome::Unreachable));
        }
        let observation = Observation { containers: self.containers.clone() };
        let action = plan(&state, &observation, self.now);
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
enum Fate {
    Done,
    Unreachable,
    Crash,
    Refused,
    /// The image is still being built, if the action needs one.
    Building,
}

#[derive(Debug, Clone)]
enum Event {
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
    Replace(u128),
    Withdraw(u128),
    Update(u32),
    Overdue(u64),
    Kill(usize),
    Vanish(usize),
    Sicken(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Work(Fate::Done)),
        2 => Just(Event::Work(Fate::Unreachable)),
        2 => Just(Event::Work(Fate::Crash)),
        1 => Just(Event::Work(Fate::Refused)),
        1 => Just(Event::Work(Fate::Building)),
        1 => Just(Event::Start),
        1 => Just(Event::Stop),
        1 => Just(Event::Restart),
        1 => any::<bool>().prop_map(Event::Delete),
        1 => Just(Event::Undelete),
        1 => Just(Event::Leave),
        1 => Just(Event::Move),
        1 => Just(Event::AddStorefront),
        2 => Just(Event::Observe),
        2 => (1..4_u128).prop_map(Event::Replace),
        1 => (1..4_u128).prop_map(Event::Withdraw),
        1 => (0..4_u32).prop_map(Event::Update),
        1 => (0..700_u64).prop_map(Event::Overdue),
        1 => (0..4_usize).prop_map(Event::Kill),
        1 => (0..4_usize).prop_map(Event::Vanish),
        1 => (0..4_usize).prop_map(Event::Sicken),
    ]
}

fn happen(world: &mut World, event: Event) {
    let nth = |world: &World, n: usize| {
        let count = world.containers.len();
        (count > 0).then(|| *world.containers.keys().nth(n % count).unwrap())
    };
    match event {
        Event::Work(fate) => world.work(fate),
        Event::Start => world.take(Input::Command(Command::Start)),
        Event::Stop => world.take(Input::Command(Command::Stop)),
        Event::Restart => world.take(Input::Command(Command::Restart)),
        Event::Delete(data) => world.take(Input::Command(Command::Delete { data })),
        Event::Undelete => world.take(Input::Command(scene::undelete(world.now))),
        Event::Leave => world.take(Input::Command(scene::leave())),
        Event::Move => world.take(Input::Command(scene::undelete_into(world.now))),
        Event::AddStorefront => world.take(Input::Command(scene::add_storefront())),
        Event::Observe => world.take(Input::Command(Command::Observe { lost: vec![] })),
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
fn check(world: &World, event: &Event) {
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
fn until_idle(world: &mut World) {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_instance_comes_to_rest_as_it_was_asked_to(
        from_backup in any::<bool>(),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut world = if from_backup { World::from_backup() } else { World::new() };
        for event in events {
            happen(&mut world, event.clone());
            check(&world, &event);
        }
        until_idle(&mut world);
        let Some(Kept { state: instance, .. }) = &world.kept else {
            prop_assert!(world.containers.is_empty());
            return Ok(());
        };
        let live = |role: Role| instance.service(role).unwrap().live.generation;
        let running: Vec<_> = world
            .containers
            .iter()
            .filter(|(_, seen)| seen.state == ServiceState::Running)
            .map(|(key, _)| *key)
            .collect();
        let services = instance.services.iter().filter(|service| !service.left_out);
        let wanted: Vec<_> = services.map(|s| (s.role, s.live.generation)).collect();
        let is_whole = wanted.len() == instance.services.len();
        match instance.state {
            S::Degraded => {
                prop_assert!(!is_whole);
                prop_assert_eq!(running, wanted);
            }
            S::Running => {
                prop_assert!(is_whole);
                prop_assert_eq!(running, wanted);
                prop_assert!(world.restored && instance.initial_restore.is_none());
            }
            S::Stopped => prop_assert!(running.is_empty()),
            S::Deleted => prop_assert!(world.containers.is_empty()),
            S::Failed => prop_assert!(instance.last_error.is_some()),
            other => prop_assert!(false, "at rest in {other:?}"),
        }
        if instance.desired == DesiredState::Running && instance.state != S::Failed {
            prop_assert_eq!(instance.state == S::Running, is_whole);
        }
        let stray = world.containers.keys().filter(|(role, generation)| live(*role) != *generation);
        prop_assert_eq!(stray.count(), 0, "only what serves is left: {:?}", world.containers);
    }
}

#[test]
fn the_databases_come_up_first_and_go_down_last() {
    let mut world = World::new();
    let mut actions = Vec::new();
    let mut run = |world: &mut World| {
        while let Some(kept) = world.kept.clone().filter(|kept| kept.pending().is_some()) {
            let state = kept.state;
            world.now = world.now.max(world.due);
            let action =
                plan(&state, &Observation { containers: world.containers.clone() }, world.now);
            if matches!(action, Action::Start(..) | Action::Stop(..)) {
                actions.push(format!("{action:?}"));
            }
            world.work(Fate::Done);
        }
    };
    run(&mut world);
    world.take(Input::Command(Command::Restart));
    run(&mut world);
    let expected = [
        "Start(SqlDb, 1)",
        "Start(Server, 1)",
        "Stop(Server, 1)",
        "Stop(SqlDb, 1)",
        "Start(SqlDb, 1)",
        "Start(Server, 1)",
    ];
    assert_eq!(actions, expected);
    assert_eq!(world.kept.unwrap().state.state, S::Running);
}

#[test]
fn a_restore_has_an_hour_and_three_attempts() {
    let mut world = World::from_backup();
    let state = |world: &World| world.kept.as_ref().unwrap().state.clone();
    while !state(&world).initial_restore.unwrap().begun {
        world.work(Fate::Done);
    }
    assert_eq!(state(&world).deadline.unwrap().since(world.now), Duration::from_secs(3600));
    for left in [2, 1, 0] {
        assert_eq!(state(&world).state, S::Starting, "{left} attempts left");
        while state(&world).initial_restore.unwrap().failures < 3 - left {
            world.work(Fate::Refused);
        }
    }
    until_idle(&mut world);
    let failed = state(&world);
    assert_eq!((failed.state, world.restored), (S::Failed, false));
    assert_eq!(failed.last_error.unwrap(), "sqldb: the backup was not restored: no");

    // Start tries again.
    world.take(Input::Command(Command::Start));
    until_idle(&mut world);
    assert_eq!((state(&world).state, world.restored), (S::Running, true));
}

#[test]
fn a_deleted_instance_comes_back_while_its_data_is_kept() {
    let mut world = World::new();
    until_idle(&mut world);
    world.take(Input::Command(Command::Delete { data: false }));
    world.take(Input::Command(scene::undelete(world.now)));
    assert_eq!(world.kept.as_ref().unwrap().state.state, S::Deleting, "not before it is gone");
    until_idle(&mut world);
    assert_eq!(world.kept.as_ref().unwrap().state.state, S::Deleted);
    let claims = |world: &World| Instances::claims(&world.kept.as_ref().unwrap().state).len();
    assert_eq!(claims(&world), 0, "the app may have another instance meanwhile");
    world.take(Input::Command(scene::undelete(world.now)));
    assert_eq!(claims(&world), 1);
    until_idle(&mut world);
    assert_eq!(world.kept.as_ref().unwrap().state.state, S::Running);

    world.take(Input::Command(Command::Delete { data: false }));
    until_idle(&mut world);
    world.take(Input::Command(Command::Delete { data: true }));
    world.take(Input::Command(scene::undelete(world.now)));
    until_idle(&mut world);
    assert!(world.kept.is_none(), "its data is gone");
}

#[test]
fn what_crashes_again_and_again_is_left_alone_for_a_while() {
    let mut world = World::new();
    until_idle(&mut world);
    for _ in 0..6 {
        world.end(Role::Server, 1);
        world.take(Input::Command(Command::Observe { lost: vec![] }));
        while world.kept.as_ref().is_some_and(|kept| kept.pending().is_some()) {
            world.work(Fate::Done);
        }
    }
    let instance = &world.kept.as_ref().unwrap().state;
    assert_eq!(instance.state, S::Failed);
    assert!(instance.last_error.as_ref().unwrap().contains("6 times"), "{:?}", instance.last_error);
    let again = instance.deadline.unwrap();
    assert_eq!(again.since(world.now), Duration::from_secs(300));
    world.now = again;
    world.tell_due();
    until_idle(&mut world);
    assert_eq!(world.kept.unwrap().state.state, S::Running);
}

#[test]
fn a_candidate_that_ends_leaves_the_one_that_serves() {
    let mut world = World::new();
    until_idle(&mut world);
    world.take(Input::Command(scene::replace(1)));
    for _ in 0..2 {
        world.work(Fate::Done);
    }
    world.end(Role::Server, 2);
    until_idle(&mut world);
    let instance = world.kept.unwrap().state;
    let server = instance.service(Role::Server).unwrap();
    assert_eq!((server.live.generation, server.candidate.is_none()), (1, true));
    let rejected = server.rejected.as_ref().unwrap();
    assert_eq!(rejected.deployment, Some(scene::deployment(1)));
    assert!(rejected.why.contains("was killed"), "{}", rejected.why);
    assert_eq!(instance.state, S::Running);
}

#[test]
fn a_service_that_is_added_and_ends_leaves_the_instance_degraded() {
    let mut world = World::new();
    until_idle(&mut world);
    world.take(Input::Command(scene::add_storefront()));
    for _ in 0..2 {
        world.work(Fate::Done);
    }
    world.end(Role::Storefront, 2);
    while world.kept.as_ref().unwrap().pending().is_some() {
        world.work(Fate::Done);
    }
    let instance = world.kept.unwrap().state;
    assert!(instance.service(Role::Storefront).unwrap().left_out, "{instance:?}");
    assert_eq!(instance.state, S::Degraded, "nobody has to look at it");
}

#[test]
fn an_unreachable_engine_stops_the_clock() {
    let mut world = World::new();
    world.work(Fate::Done);
    let before = world.kept.as_ref().unwrap().state.deadline.unwrap();
    for _ in 0..200 {
        world.work(Fate::Unreachable);
    }
    assert!(world.now > before, "longer than it may take");
    world.tell_due();
    until_idle(&mut world);
    assert_eq!(world.kept.unwrap().state.state, S::Running);
}

#[test]
fn a_deadline_does_not_end_an_instance_whose_image_is_being_built() {
    let mut world = World::new();
    for _ in 0..3 {
        world.work(Fate::Building);
        world.now = world.now + Duration::from_secs(3600);
        world.tell_due();
        assert_eq!(world.kept.as_ref().unwrap().state.state, S::Provisioning);
    }
    let reference = Some("sha256:0".to_owned());
    let Kept { state, .. } = world.kept.clone().unwrap();
    let action = plan(&state, &Observation::default(), world.now);
    let Action::Provision(role, generation) = action else { panic!("{action:?}") };
    let resolved = ResolvedImage { role, generation, reference: reference.clone().unwrap() };
    world.take(Input::Outcome(Outcome::Reconciled {
        observation: Observation::default(),
        action,
        result: Ok(Some(resolved)),
        log: vec![],
    }));
    let instance = &world.kept.as_ref().unwrap().state;
    let image = &instance.service(role).unwrap().live.image;
    assert_eq!((&image.reference, image.build), (&reference, None));
    let left = instance.deadline.unwrap().since(world.now);
    assert_eq!(left, Duration::from_secs(600), "it still has its time to start");
}

#[test]
fn what_is_left_out_is_told_after_the_backup_was_restored() {
    let mut world = World::new();
    let state = &mut world.kept.as_mut().unwrap().state;
    state.services.push(scene::storefront());
    let mut restore = scene::initial_restore();
    restore.begun = true;
    state.initial_restore = Some(restore);
    let mut ended = |action: Action, result| {
        let observation = Observation::default();
        let outcome = Outcome::Reconciled { observation, action, result, log: vec![] };
        world.take(Input::Outcome(outcome));
        world.kept.as_ref().unwrap().state.last_error.clone()
    };
    let told = ended(Action::Provision(Role::Storefront, 1), Err("no such image".into()));
    let told = told.unwrap();
    assert!(told.contains("no such image; it is left out"), "{told}");
    let failed = ended(Action::Restore(Role::SqlDb), Err("the disk is full".into()));
    assert!(failed.unwrap().contains("the disk is full"));
    assert_eq!(ended(Action::Restore(Role::SqlDb), Ok(None)), Some(told));
}
