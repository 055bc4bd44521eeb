//! The owners of deployments, backups, backup schedules and image builds on an engine that fails on
//! demand.

use super::{
    harness::{FAILURES, comes_to, fails_once, is_done_twice, pairs, run, run_with},
    instances::{create, create_in, state, until},
    scene,
};
use actors::{
    kinds::{
        hosting::{
            backup_schedules::{self, BackupSchedules},
            backups::{self, Backups, Command, State},
            deployments::Deployments,
            image_builds::ImageBuilds,
            images::{ImageIndex, Images},
            instances as owned,
            instances::Instances,
            names,
        },
        people::apps::Apps,
        world::World,
    },
    ports::Ports,
    runtime::{entries::Under, resource::Input},
};
use bytes::Bytes;
use container_engine::fake::{
    ExecCall, Fake, InjectedFault, Operation, ProgramStep, Script, Times,
};
use contract::{
    AppId, BackupId, DeploymentId, InstanceId, JobId, ScheduleId, Timestamp,
    authentication::Tier,
    backups::{BackupKind, BackupSchedule, BackupState, RestoreState},
    deployments::DeploymentState,
    image_builds::BuildJobState,
    instances::{InstanceState, Role},
    quotas::Quota,
};
use futures_util::future::{join, join_all};
use std::{sync::Arc, time::Duration};

async fn running(world: &Arc<World>) -> InstanceId {
    let id = create(world).await;
    until(world, id, InstanceState::Running, "at first").await;
    id
}

/// The operations of the deployment itself.
const BUILDS: [Operation; 2] = [Operation::Images, Operation::Build];
/// The operations of the instance during a deployment.
const REPLACES_WITH: [Operation; 7] = [
    Operation::Image,
    Operation::EnsureNetwork,
    Operation::EnsureContainer,
    Operation::Start,
    Operation::Stop,
    Operation::Container,
    Operation::RemoveContainer,
];

/// Builds a repository, and replaces the container that serves.
async fn deploy(world: &Arc<World>, engine: &Fake, instance: InstanceId, told: &str) {
    let now = world.ports.clock.now();
    let id: DeploymentId = world.ports.random.id(now);
    let mut begun = scene::deploying(id, instance, now);
    begun.deployment.app_id = state(world, instance).unwrap().app_id;
    world.to::<Deployments>(id).create(begun).await.unwrap();
    comes_to::<Deployments>(world, id, told, |deployment| {
        let deployment = deployment.unwrap();
        assert_ne!(deployment.deployment.state, DeploymentState::Failed, "{told}: {deployment:?}");
        deployment.deployment.state == DeploymentState::Live && !deployment.in_queue
    })
    .await;
    let server = state(world, instance).unwrap().service(Role::Server).unwrap().clone();
    assert_eq!(server.live.deployment, Some(id), "{told}");
    assert_eq!(engine.containers().len(), 2, "{told}: {:?}", engine.containers());
}

#[test]
fn a_deployment_stands_each_failure() {
    run(|world, engine| async move {
        let instance = running(&world).await;
        for fault in FAILURES {
            let deploy = async |told: &str| deploy(&world, &engine, instance, told).await;
            fails_once(&engine, &[&BUILDS[..], &REPLACES_WITH[..]].concat(), fault, deploy).await;
        }
    });
}

#[test]
fn a_deployment_may_do_each_thing_twice() {
    run(|world, engine| async move {
        let instance = running(&world).await;
        let deploy = async |told: &str| deploy(&world, &engine, instance, told).await;
        is_done_twice::<Deployments>(&world, &engine, &[&BUILDS], deploy).await;
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

/// Database programs that dump and restore without a fault.
pub fn tools(call: &ExecCall) -> Option<Script> {
    let dump = "CREATE TABLE a ();\n--\n-- PostgreSQL database dump complete\n--\n\n";
    match call.exec.command.first()?.as_str() {
        "pg_dump" => Some(vec![ProgramStep::Out(Bytes::from_static(dump.as_bytes()))]),
        "psql" => Some(vec![ProgramStep::Read]),
        _ => None,
    }
}

/// Makes two backups of a schedule that keeps one, so that the second replaces the first. Then
/// verifies, restores and deletes the second. A fault in `again` is injected into the database
/// program before the restore check and before the restore.
async fn back_up(
    world: &Arc<World>,
    engine: &Fake,
    (instance, again): (InstanceId, Option<&InjectedFault>),
    told: &str,
) {
    let there = (engine.containers(), engine.networks(), engine.volumes());
    let before = engine.executions().len();
    let mut made = Vec::new();
    for _ in 0..2 {
        let id: BackupId = world.ports.random.id(world.ports.clock.now());
        let mut begun = scene::backing_up(id, instance, world.ports.clock.now());
        begun.backup.app_id = state(world, instance).unwrap().app_id;
        let create = backups::Begin {
            backup: begun.backup,
            database: None,
            keep: Some(1),
            verify: false,
            refused: None,
        };
        world.to::<Backups>(id).create(create).await.unwrap();
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
        let troubled = engine.injected(Operation::Exec);
        if let Some(fault) = again {
            engine.inject(Operation::Exec, fault.clone(), Times::Once);
        }
        world.to::<Backups>(id).ask(command).await.unwrap();
        comes_to::<Backups>(world, id, told, |backup| {
            let State { backup, has_check_database, .. } = backup.unwrap();
            let restore = if of { &backup.restore } else { &backup.verification };
            let restore = restore.as_ref().unwrap();
            assert_ne!(restore.state, RestoreState::Failed, "{told}: {restore:?}");
            restore.state == RestoreState::Succeeded && !has_check_database
        })
        .await;
        // After a restore, the instance restarts.
        comes_to::<Instances>(world, instance, told, |found| {
            found.unwrap().state == InstanceState::Running
        })
        .await;
        let met = engine.injected(Operation::Exec) > troubled;
        assert_eq!(met, again.is_some(), "{told}");
        let now = (engine.containers(), engine.networks(), engine.volumes());
        assert_eq!(now, there, "{told}: nothing is left of the trial");
    }
    world.to::<Backups>(id).ask(Command::Delete).await.unwrap();
    comes_to::<Backups>(world, id, told, |backup| backup.is_none()).await;
    let executions = engine.executions().split_off(before);
    let restored = executions.iter().filter(|e| e.input.ends_with(b"COMMIT;\n")).count();
    assert!(restored >= 2, "{told}: on trial and for good");
}

#[test]
fn a_backup_stands_each_failure() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let instance = running(&world).await;
        for (operation, fault) in pairs(&BACKS_UP_WITH) {
            let again = (operation == Operation::Exec).then_some(&fault);
            let of = (instance, again);
            let back_up = async |told: &str| back_up(&world, &engine, of, told).await;
            fails_once(&engine, &[operation], fault.clone(), back_up).await;
        }
    });
}

#[test]
fn a_backup_may_do_each_thing_twice() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let instance = running(&world).await;
        for operation in BACKS_UP_WITH {
            let again = (operation == Operation::Exec).then_some(&InjectedFault::HangAfter);
            let of = (instance, again);
            let back_up = async |told: &str| back_up(&world, &engine, of, told).await;
            is_done_twice::<Backups>(&world, &engine, &[&[operation]], back_up).await;
        }
    });
}

/// Makes a backup and waits until it is ready.
async fn ready(world: &Arc<World>, instance: InstanceId) -> BackupId {
    let now = world.ports.clock.now();
    let id: BackupId = world.ports.random.id(now);
    let mut backup = scene::backing_up(id, instance, now).backup;
    backup.app_id = state(world, instance).unwrap().app_id;
    let begin = backups::Begin { backup, database: None, keep: None, verify: false, refused: None };
    world.to::<Backups>(id).create(begin).await.unwrap();
    let is_ready = |found: &State| found.backup.state == BackupState::Ready;
    comes_to::<Backups>(world, id, "a backup", |found| found.is_some_and(is_ready)).await;
    id
}

#[test]
fn the_first_restore_check_of_an_organization_does_not_wait_for_all_of_another() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let many = running(&world).await;
        let project = world.ports.random.id(world.ports.clock.now());
        let one = create_in(&world, project, "parse-server-postgresql").await;
        until(&world, one, InstanceState::Running, "of another organization").await;
        let mut ids = Vec::new();
        for instance in [many, many, many, many, many, one] {
            ids.push(ready(&world, instance).await);
        }
        let mut held = engine.hold(Operation::EnsureVolume);
        for id in &ids {
            world.to::<Backups>(*id).ask(Command::Verify).await.unwrap();
        }
        held.reached(3).await;
        held.release();
        for id in &ids {
            comes_to::<Backups>(&world, *id, "a restore check", |found| {
                let verification = found.unwrap().backup.verification.as_ref().unwrap();
                assert_ne!(verification.state, RestoreState::Failed, "{verification:?}");
                verification.state == RestoreState::Succeeded
            })
            .await;
        }
        let executions = engine.executions();
        let turn = |id: &BackupId| {
            let name = names::restore_check(*id);
            executions.iter().position(|execution| execution.call.container == name).unwrap()
        };
        let [_, _, third, .., other] = &ids[..] else { unreachable!() };
        assert!(turn(other) < turn(third), "two of three turns are for one organization");
    });
}

/// A schedule of an instance's backups that is due at `now`.
fn nightly(
    id: ScheduleId,
    (app_id, instance_id): (AppId, InstanceId),
    now: Timestamp,
) -> BackupSchedule {
    BackupSchedule {
        id,
        app_id,
        instance_id,
        database: BackupKind::SqlDb,
        cron: "30 3 * * *".parse().unwrap(),
        keep: 7,
        verify: false,
        next_at: now,
    }
}

#[test]
fn a_schedule_makes_each_backup_once() {
    run(|world, engine| async move {
        engine.on_exec(tools);
        let instance_id = running(&world).await;
        let now = world.ports.clock.now();
        let id: ScheduleId = world.ports.random.id(now);
        let app_id = state(&world, instance_id).unwrap().app_id;
        let schedule = nightly(id, (app_id, instance_id), now);
        let schedule_owner = || world.to::<BackupSchedules>(id);
        schedule_owner().create(schedule).await.unwrap();
        // Many commands and a restart at the due time make one backup only.
        let due = join_all((0..16).map(|_| schedule_owner().tell_if_there(Input::Due)));
        let (told, _) = join(due, schedule_owner().restart()).await;
        assert!(told.iter().any(Result::is_ok), "{told:?}");
        schedule_owner().restart().await.unwrap();
        let rest = schedule_owner().wait_idle(Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(rest.next_at > now);
        let of_app = Under::<Apps>(rest.app_id);
        let backups = || {
            let keys = world.store.newest::<Backups>(&of_app, None).keys();
            keys.map(Result::unwrap).collect::<Vec<_>>()
        };
        let made = backups();
        let [backup] = made[..] else { panic!("{made:?}") };
        comes_to::<Backups>(&world, backup, "on schedule", |backup| {
            let backup = &backup.unwrap().backup;
            backup.state == BackupState::Ready && backup.scheduled
        })
        .await;

        // A stopped instance gets no backup. The deletion of the instance ends the schedule.
        let next = |next_at| BackupSchedule { next_at, ..(*rest).clone() };
        for (command, stays) in
            [(owned::Command::Stop, true), (owned::Command::Delete { data: true }, false)]
        {
            world.to::<Instances>(instance_id).ask(command).await.unwrap();
            let due = next(world.ports.clock.now());
            schedule_owner().ask(backup_schedules::Command::Replace(due)).await.unwrap();
            let left = schedule_owner().wait_idle(Duration::from_secs(60)).await.unwrap();
            assert_eq!(left.is_some(), stays);
            assert_eq!(backups(), made);
        }
    });
}

#[test]
fn a_scheduled_backup_that_a_quota_refuses_has_failed_with_the_reason() {
    let no_backups = |ports: Ports| {
        let mut site = (*ports.site).clone();
        site.quotas.set(Tier::Free, Quota::Backups, Some(0));
        Ports { site: Arc::new(site), ..ports }
    };
    run_with(no_backups, |world, engine| async move {
        engine.on_exec(tools);
        let instance_id = running(&world).await;
        let now = world.ports.clock.now();
        let app_id = state(&world, instance_id).unwrap().app_id;
        let id: ScheduleId = world.ports.random.id(now);
        world
            .to::<BackupSchedules>(id)
            .create(nightly(id, (app_id, instance_id), now))
            .await
            .unwrap();
        world.to::<BackupSchedules>(id).tell_if_there(Input::Due).await.unwrap();
        let rest = world.to::<BackupSchedules>(id).wait_idle(Duration::from_secs(60)).await;
        assert!(rest.unwrap().unwrap().next_at > now, "the next one comes in its time");
        let made = world.store.newest::<Backups>(&Under::<Apps>(app_id), None).keys();
        let made: Vec<_> = made.map(Result::unwrap).collect();
        let [backup] = made[..] else { panic!("{made:?}") };
        let found = world.store.get::<Backups>(&backup).unwrap().unwrap().state.backup.clone();
        assert_eq!((found.state, found.scheduled), (BackupState::Failed, true));
        assert!(found.error.unwrap().contains("uses 0 of 0 backups"));
    });
}

const BUILDS_WITH: [Operation; 3] = [Operation::Images, Operation::Build, Operation::Push];

/// Builds and pushes a version of a registered image.
async fn build(world: &Arc<World>, told: &str) {
    let image = world.store.newest(&ImageIndex::All, None).keys().next().unwrap().unwrap();
    let id: JobId = world.ports.random.id(world.ports.clock.now());
    let version = id.to_string().replace("job_", "v");
    let begun = scene::building(id, image, &version, world.ports.clock.now());
    world.to::<ImageBuilds>(id).create(begun).await.unwrap();
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
        for (operation, fault) in pairs(&BUILDS_WITH) {
            fails_once(&engine, &[operation], fault, async |told| build(&world, told).await).await;
        }
    });
}

#[test]
fn a_build_may_do_each_thing_twice() {
    run(|world, engine| async move {
        let build = async |told: &str| build(&world, told).await;
        is_done_twice::<ImageBuilds>(
            &world,
            &engine,
            &BUILDS_WITH.each_ref().map(std::slice::from_ref),
            build,
        )
        .await;
    });
}
