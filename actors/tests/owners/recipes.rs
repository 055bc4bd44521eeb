//! Instances whose image is built from a recipe, on an engine that fails on demand.

use super::{
    harness::{comes_to, fails_once, is_done_twice, pairs, run},
    instances::{create_from, state, until},
    scene::START,
};
use actors::kinds::{
    hosting::{
        image_builds::{self, ImageBuildIndex, ImageBuilds},
        instances::{Command, Instances},
    },
    world::World,
};
use container_engine::{
    EngineError,
    fake::{Fake, InjectedFault, Operation, Times},
};
use contract::{
    image_builds::{BuildJob, BuildJobState},
    instances::{InstanceState as S, Role},
};
use std::sync::Arc;

/// All builds, newest first.
fn jobs(world: &World) -> Vec<BuildJob> {
    let builds = world.store.newest::<ImageBuilds>(&ImageBuildIndex::All, None);
    builds.map(|found| found.unwrap().1.job.clone()).collect()
}

/// Creates a market server, whose image has to be built, and waits until it runs.
async fn live(world: &Arc<World>, told: &str) {
    let id = create_from(world, "vendure").await;
    until(world, id, S::Running, told).await;
    let image = state(world, id).unwrap().service(Role::Server).unwrap().live.image.clone();
    assert!(image.reference.is_some_and(|id| id.starts_with("sha256:")), "{told}");
    assert_eq!(image.build, None, "{told}");
}

async fn remove_images(engine: &Fake) {
    use container_engine::Engine;
    for image in engine.images(&Default::default()).await.unwrap() {
        if image.labels.get("svc.recipe").is_some_and(|recipe| !recipe.is_empty()) {
            engine.remove_image(&image.tags[0]).await.unwrap();
        }
    }
}

#[test]
fn an_image_is_built_once_for_all_instances_and_again_when_it_is_lost() {
    run(|world, engine| async move {
        let both = [create_from(&world, "vendure").await, create_from(&world, "vendure").await];
        for id in both {
            until(&world, id, S::Running, "two at once").await;
            assert_eq!(state(&world, id).unwrap().last_error, None);
        }
        let [job] = jobs(&world).try_into().unwrap();
        assert_eq!((job.state, job.progress, job.digest), (BuildJobState::Succeeded, 100, None));
        live(&world, "with the image").await;
        assert_eq!(jobs(&world).len(), 1);

        // A container that has to be made anew needs the image again.
        for id in both {
            world.to::<Instances>(id).ask(Command::Stop).await.unwrap();
            until(&world, id, S::Stopped, "stopped").await;
        }
        for name in engine.containers() {
            use container_engine::Engine;
            engine.remove_container(&name).await.unwrap();
        }
        remove_images(&engine).await;
        for id in both {
            world.to::<Instances>(id).ask(START).await.unwrap();
        }
        for id in both {
            until(&world, id, S::Running, "without the image").await;
        }
        assert_eq!(jobs(&world).len(), 2);
    });
}

#[test]
fn a_failed_build_fails_the_instance_in_its_words_and_a_start_tries_again() {
    run(|world, engine| async move {
        let why = "the registry of packages does not answer";
        let refused = InjectedFault::Refuse(EngineError::Refused(why.into()));
        engine.inject(Operation::Build, refused, Times::Once);
        let id = create_from(&world, "vendure").await;
        until(&world, id, S::Failed, "refused").await;
        let error = state(&world, id).unwrap().last_error.unwrap();
        assert!(
            error.starts_with("server: its image was not built, see the log of job ")
                && error.ends_with(why)
        );
        world.to::<Instances>(id).ask(START).await.unwrap();
        until(&world, id, S::Running, "again").await;
        assert_eq!(state(&world, id).unwrap().last_error, None);
        let states: Vec<_> = jobs(&world).iter().map(|job| job.state).collect();
        assert_eq!(states, [BuildJobState::Succeeded, BuildJobState::Failed]);
    });
}

#[test]
fn whoever_cancels_the_build_fails_the_instance() {
    run(|world, engine| async move {
        engine.inject(Operation::Build, InjectedFault::HangBefore, Times::Once);
        let id = create_from(&world, "vendure").await;
        comes_to::<Instances>(&world, id, "building", |instance| {
            let said = instance.and_then(|instance| instance.last_error.clone());
            said.is_some_and(|said| said.contains("is being built"))
        })
        .await;
        let job = jobs(&world)[0].id;
        world.to::<ImageBuilds>(job).ask(image_builds::Command::Cancel).await.unwrap();
        until(&world, id, S::Failed, "cancelled").await;
        world.to::<Instances>(id).ask(START).await.unwrap();
        until(&world, id, S::Running, "again").await;
    });
}

const USED: [Operation; 2] = [Operation::Images, Operation::Build];

#[test]
fn each_operation_may_fail_once_before_or_after_it_was_done() {
    for (operation, fault) in pairs(&USED) {
        run(|world, engine| async move {
            let live = async |told: &str| live(&world, told).await;
            fails_once(&engine, &[operation], fault, live).await;
        });
    }
}

#[test]
fn a_build_may_be_done_twice_because_its_owner_was_restarted() {
    run(|world, engine| async move {
        let live = async |told: &str| live(&world, told).await;
        is_done_twice::<ImageBuilds>(&world, &engine, &[&[Operation::Build]], live).await;
    });
}

#[test]
fn an_instance_looks_for_its_image_again_when_its_owner_was_restarted() {
    run(|world, engine| async move {
        let live = async |told: &str| live(&world, told).await;
        is_done_twice::<Instances>(&world, &engine, &[&[Operation::Images]], live).await;
    });
}
