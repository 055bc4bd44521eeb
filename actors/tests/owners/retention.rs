//! What has ended is removed after its retention; what a rollback may need stays.

use super::{
    harness::{comes_to, run_by},
    instances::{create, state, until},
    scene,
    world::clock,
};
use actors::{
    background::retention::apply,
    kinds::{
        hosting::{
            deployments::{Command, Deployments},
            image_builds::ImageBuilds,
            images::ImageIndex,
            progress_log::{LinesPage, say},
        },
        world::World,
    },
    ports::Ports,
    runtime::manual_clock::ManualClock,
};
use contract::{
    DeploymentId, InstanceId, JobId,
    deployments::{DeploymentState, StepName},
    image_builds::BuildJobState,
    instances::InstanceState,
    retention::Retention,
};
use std::{sync::Arc, time::Duration};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub async fn begin(world: &World, instance: InstanceId) -> DeploymentId {
    let now = world.ports.clock.now();
    let id: DeploymentId = world.ports.random.id(now);
    let mut begun = scene::deploying(id, instance, now);
    begun.deployment.app_id = state(world, instance).unwrap().app_id;
    world.to::<Deployments>(id).create(begun).await.unwrap();
    id
}

pub async fn ends(world: &Arc<World>, id: DeploymentId, end: DeploymentState) {
    comes_to::<Deployments>(world, id, "it ends", |deployment| {
        let deployment = deployment.unwrap();
        deployment.deployment.state == end && !deployment.in_queue
    })
    .await;
}

/// Days pass without work, and what was kept long enough is removed.
async fn later(world: &Arc<World>, clock: &ManualClock, days: u32) {
    clock.advance(DAY * days);
    assert!(apply(world).await.is_empty());
}

#[test]
fn what_no_rollback_restores_goes_with_its_log() {
    let clock = clock();
    let time = clock.clone();
    run_by(
        &clock,
        |ports| ports,
        |world, _| async move {
            let instance = create(&world).await;
            until(&world, instance, InstanceState::Running, "at first").await;
            let mut served = Vec::new();
            for _ in 0..2 {
                served.push(begin(&world, instance).await);
                ends(&world, served[served.len() - 1], DeploymentState::Live).await;
            }
            ends(&world, served[0], DeploymentState::Superseded).await;
            let cancelled = begin(&world, instance).await;
            world.to::<Deployments>(cancelled).ask(Command::Cancel).await.unwrap();
            ends(&world, cancelled, DeploymentState::Cancelled).await;
            // More lines than are removed at once.
            say(&world, cancelled, StepName::Build, (0..700).map(|n| n.to_string()));

            let image = world.store.newest(&ImageIndex::All, None).keys().next().unwrap().unwrap();
            let job: JobId = world.ports.random.id(time.port().now());
            let begun = scene::building(job, image, "v1", time.port().now());
            world.to::<ImageBuilds>(job).create(begun).await.unwrap();
            comes_to::<ImageBuilds>(&world, job, "it is built", |build| {
                build.unwrap().job.state == BuildJobState::Succeeded
            })
            .await;

            let deployment = |id| world.store.get::<Deployments>(&id).unwrap();
            let build = || world.store.get::<ImageBuilds>(&job).unwrap();
            later(&world, &time, 89).await;
            assert!(deployment(cancelled).is_some_and(|found| !found.removing));
            assert!(build().is_some());
            later(&world, &time, 2).await;
            comes_to::<Deployments>(&world, cancelled, "it is removed", |found| found.is_none())
                .await;
            comes_to::<ImageBuilds>(&world, job, "it is removed", |found| found.is_none()).await;
            for id in [cancelled.to_string(), job.to_string()] {
                assert!(LinesPage::read(&world.store, id, None).unwrap().lines.is_empty());
            }
            assert!(served.iter().all(|id| deployment(*id).is_some_and(|found| !found.removing)));
        },
    );
}

#[test]
fn nothing_goes_that_is_kept_for_ever() {
    let clock = clock();
    let for_ever = |ports: Ports| {
        let mut site = (*ports.site).clone();
        site.retentions.set(Retention::Deployments, None);
        Ports { site: Arc::new(site), ..ports }
    };
    let time = clock.clone();
    run_by(&clock, for_ever, |world, _| async move {
        let instance = create(&world).await;
        until(&world, instance, InstanceState::Running, "at first").await;
        let cancelled = begin(&world, instance).await;
        world.to::<Deployments>(cancelled).ask(Command::Cancel).await.unwrap();
        ends(&world, cancelled, DeploymentState::Cancelled).await;
        later(&world, &time, 10_000).await;
        let found = world.store.get::<Deployments>(&cancelled).unwrap();
        assert!(found.is_some_and(|found| !found.removing));
    });
}
