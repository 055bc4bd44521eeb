//! The state machine of an instance under any events in any order: the record keeps its invariants,
//! and when the events end, the instance comes to rest in the desired state.

use super::{
    model::{Fate, World, check, event, happen, until_idle},
    scene,
};
use actors::{
    kinds::hosting::instances::{
        Action, Command, Instances, Observation, Outcome, ResolvedImage, plan,
    },
    runtime::resource::{Input, Kept, Resource},
};
use contract::instances::{DesiredState, InstanceState as S, Role, ServiceState};
use proptest::prelude::*;
use std::time::Duration;

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
            let action = plan(&state, &world.observation(), world.now);
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
    world.take(Input::Command(scene::START));
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
fn an_unreachable_engine_and_one_that_others_use_stop_the_clock() {
    for fate in [Fate::Unreachable, Fate::NoTurn] {
        let mut world = World::new();
        world.work(Fate::Done);
        let before = world.kept.as_ref().unwrap().state.deadline.unwrap();
        for _ in 0..200 {
            world.work(fate);
        }
        assert!(world.now > before, "longer than it may take");
        world.tell_due();
        until_idle(&mut world);
        assert_eq!(world.kept.unwrap().state.state, S::Running);
    }
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
