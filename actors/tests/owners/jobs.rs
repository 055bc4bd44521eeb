//! The owners of what is done for instances (deployments, backups, builds of images) on an engine
//! that goes wrong on demand.

use super::{
    harness::{FAILURES, comes_to, fails_once, is_done_twice, pairs, run},
    instances::{create, state, until},
    scene,
};
use actors::{
    kinds::{
        backups::{self, Backups, Command, State},
        deployments::Deployments,
        image_builds::ImageBuilds,
        images::{ImageIndex, Images},
        instances as owned,
    },
    world::World,
};
use bytes::Bytes;
use container_engine::fake::{ExecCall, Fake, Operation, Script, Step, Times, Trouble};
use contract::{
    BackupId, DeploymentId, InstanceId, JobId,
    backups::{BackupKind, BackupState, RestoreState},
    deployments::DeploymentState,
    image_builds::BuildJobState,
    instances::{InstanceState, Role},
};
use std::sync::Arc;

async fn running(world: &Arc<World>) -> InstanceId {
    let id = create(world).await;
    until(world, id, InstanceState::Running, "at first").await;
    id
}

/// What a deployment does itself.
const BUILDS: [Operation; 2] = [Operation::Images, Operation::Build];
/// What the instance does for it.
const REPLACES_WITH: [Operation; 7] = [
    Operation::EnsureImage,
    Operation::EnsureNetwork,
    Operation::EnsureContainer,
    Operation::Start,
    Operation::Stop,
    Operation::Container,
    Operation::RemoveContainer,
];

/// A repository is built and takes the place of what served.
async fn deploy(world: &Arc<World>, engine: &Fake, instance: InstanceId, told: &str) {
    let now = world.ports.clock.now();
    let id: DeploymentId = world.ports.random.id(now);
    let begun = scene::deploying(id, instance, now);
    let owners = &world.owners().unwrap().deployments;
    owners.create(id, begun).await.unwrap();
    comes_to::<Deployments>(world, id, told, |deployment| {
        let deployment = deployment.unwrap();
        assert_ne!(deployment.deployment.state, DeploymentState::Failed, "{told}: {deployment:?}");
        deployment.deployment.state == DeploymentState::Live && !deployment.in_lane
    })
    .await;
    let server = state(world, instance).unwrap().part(Role::Server).unwrap().clone();
    assert_eq!(server.live.deployment, Some(id), "{told}");
    assert_eq!(engine.containers().len(), 2, "{told}: {:?}", engine.containers());
}

#[test]
fn a_deployment_stands_each_failure() {
    run(|world, engine| async move {
        let instance = running(&world).await;
        for trouble in FAILURES {
            let deploy = async |told: &str| deploy(&world, &engine, instance, told).await;
            fails_once(&engine, &[&BUILDS[..], &REPLACES_WITH[..]].concat(), trouble, deploy).await;
        }
    });
}

#[test]
fn a_deployment_may_do_each_thing_twice() {
    run(|world, engine| async move {
        let instance = running(&world).await;
        let deploy = async |told: &str| deploy(&world, &engine, instance, told).await;
        is_done_twice(&world, &engine, &[&BUILDS], |o| &o.deployments, deploy).await;
    });
}

const BACKS_UP_WITH: [Operation; 10] = [
    Operation::Exec,
    Operation::EnsureImage,
    Operation::EnsureNetwork,
    Operation::EnsureVolume,
    Operation::EnsureContainer,
    Operation::Start,
    Operation::Container,
    Operation::RemoveContainer,
    Operation::RemoveVolume,
    Operation::RemoveNetwork,
];

/// Tools that dump and restore without a fault.
fn tools(call: &ExecCall) -> Option<Script> {
    let dump = "CREATE TABLE a ();\n--\n-- PostgreSQL database dump complete\n--\n\n";
    match call.exec.command.first()?.as_str() {
        "pg_dump" => Some(vec![Step::Out(Bytes::from_static(dump.as_bytes()))]),
        "psql" => Some(vec![Step::Read]),
        _ => None,
    }
}

/// An instance with a schedule that keeps one backup.
async fn scheduled(world: &Arc<World>) -> InstanceId {
    let id = running(world).await;
    let (cron, next_at) = ("30 3 * * *".parse().unwrap(), "2999-01-31T03:30:00Z".parse().unwrap());
    let schedule = backups::Schedule { cron, keep: 1, verify: false, next_at };
    let command = owned::Command::Schedule(BackupKind::SqlDb, Some(schedule));
    world.owners().unwrap().instances.ask(id, command).await.unwrap();
    id
}

/// A backup is made and takes the place of the one before; it is verified, put back and deleted. The
/// trouble that the programs in the database met, they meet again each time.
async fn back_up(
    world: &Arc<World>,
    engine: &Fake,
    (instance, again): (InstanceId, Option<&Trouble>),
    told: &str,
) {
    let there = (engine.containers(), engine.networks(), engine.volumes());
    let (before, owners) = (engine.executions().len(), &world.owners().unwrap().backups);
    let mut made = Vec::new();
    for _ in 0..2 {
        let id: BackupId = world.ports.random.id(world.ports.clock.now());
        let begun = scene::backing_up(id, instance, world.ports.clock.now());
        let create = backups::Begin { backup: begun.backup, verify: false };
        owners.create(id, create).await.unwrap();
        comes_to::<Backups>(world, id, told, |backup| {
            let backup = backup.unwrap();
            assert_eq!(backup.backup.error, None, "{told}");
            backup.backup.state == BackupState::Ready && !backup.surplus
        })
        .await;
        made.push(id);
    }
    let [older, id] = made[..] else { unreachable!() };
    comes_to::<Backups>(world, older, told, |backup| backup.is_none()).await;

    for (command, of) in [(Command::Verify, false), (Command::Restore, true)] {
        let troubled = engine.troubled(Operation::Exec);
        if let Some(trouble) = again {
            engine.trouble(Operation::Exec, trouble.clone(), Times::Once);
        }
        owners.ask(id, command).await.unwrap();
        comes_to::<Backups>(world, id, told, |backup| {
            let State { backup, on_trial, .. } = backup.unwrap();
            let restore = if of { &backup.restore } else { &backup.verification };
            let restore = restore.as_ref().unwrap();
            assert_ne!(restore.state, RestoreState::Failed, "{told}: {restore:?}");
            restore.state == RestoreState::Succeeded && !on_trial
        })
        .await;
        let met = engine.troubled(Operation::Exec) > troubled;
        assert_eq!(met, again.is_some(), "{told}");
        let now = (engine.containers(), engine.networks(), engine.volumes());
        assert_eq!(now, there, "{told}: nothing is left of the trial");
    }
    owners.ask(id, Command::Delete).await.unwrap();
    comes_to::<Backups>(world, id, told, |backup| backup.is_none()).await;
    let executions = engine.executions().split_off(before);
    let restored = executions.iter().filter(|e| e.input.ends_with(b"COMMIT;\n")).count();
    assert!(restored >= 2, "{told}: on trial and for good");
}

#[test]
fn a_backup_stands_each_failure() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let instance = scheduled(&world).await;
        for (operation, trouble) in pairs(&BACKS_UP_WITH) {
            let again = (operation == Operation::Exec).then_some(&trouble);
            let of = (instance, again);
            let back_up = async |told: &str| back_up(&world, &engine, of, told).await;
            fails_once(&engine, &[operation], trouble.clone(), back_up).await;
        }
    });
}

#[test]
fn a_backup_may_do_each_thing_twice() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let instance = scheduled(&world).await;
        for operation in BACKS_UP_WITH {
            let again = (operation == Operation::Exec).then_some(&Trouble::HangAfter);
            let of = (instance, again);
            let back_up = async |told: &str| back_up(&world, &engine, of, told).await;
            is_done_twice(&world, &engine, &[&[operation]], |o| &o.backups, back_up).await;
        }
    });
}

const BUILDS_WITH: [Operation; 3] = [Operation::Images, Operation::Build, Operation::Push];

/// A version of a registered image is built and pushed.
async fn build(world: &Arc<World>, told: &str) {
    let image = world.store.newest(&ImageIndex::All, None, 1).unwrap().remove(0);
    let id: JobId = world.ports.random.id(world.ports.clock.now());
    let version = id.to_string().replace("job_", "v");
    let begun = scene::building(id, image, &version, world.ports.clock.now());
    let owners = &world.owners().unwrap().image_builds;
    owners.create(id, begun).await.unwrap();
    comes_to::<ImageBuilds>(world, id, told, |build| {
        let build = build.unwrap();
        assert_ne!(build.job.state, BuildJobState::Failed, "{told}: {build:?}");
        build.job.state == BuildJobState::Succeeded
    })
    .await;
    let image = world.store.get::<Images>(&image).unwrap().unwrap();
    let made = image.state.versions.iter().filter(|v| v.version.as_str() == version);
    assert_eq!(made.count(), 1, "{told}");
}

#[test]
fn a_build_stands_each_failure() {
    run(|world, engine| async move {
        for (operation, trouble) in pairs(&BUILDS_WITH) {
            fails_once(&engine, &[operation], trouble, async |told| build(&world, told).await)
                .await;
        }
    });
}

#[test]
fn a_build_may_do_each_thing_twice() {
    run(|world, engine| async move {
        let build = async |told: &str| build(&world, told).await;
        is_done_twice(
            &world,
            &engine,
            &BUILDS_WITH.each_ref().map(std::slice::from_ref),
            |o| &o.image_builds,
            build,
        )
        .await;
    });
}
