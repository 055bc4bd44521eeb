//! Instances that move between two engines, each of which fails on demand.

use super::{
    harness::{FAILURES, WITHIN, comes_to, is_done_twice, run_by},
    instances::{create, state, until},
    jobs::tools,
    scene, world,
};
use actors::{
    kinds::{
        hosting::{
            engines::{AddedEngine, EngineKeys, Engines},
            instances::{Command, InitialRestore, Instance, Instances},
            names,
        },
        people::usage::{machine, usage},
        world::World,
    },
    ports::{
        Ports,
        engines::{Access, Engines as Connections},
        upstream::Upstream,
    },
    runtime::{manual_clock::ManualClock, ref_count::RefCount, resource::Input},
};
use async_trait::async_trait;
use bytes::Bytes;
use container_engine::{
    Credentials, Engine,
    fake::{Fake, InjectedFault, Operation, Times},
};
use contract::{
    BackupId, EngineId, Fault, InstanceId, Timestamp,
    instances::{InstanceState as S, Role},
    quotas::Quota,
};
use futures_util::{StreamExt, stream};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

const SECOND: &str = "10.0.0.2";
/// What the database holds.
const BYTES: u64 = 7 << 20;

/// The way to the second engine.
struct Second(Fake);

impl Connections for Second {
    fn connect(&self, access: &Access) -> Result<Arc<dyn Engine>, String> {
        let Credentials::Tls(certificates) = &access.credentials else { panic!("{access:?}") };
        assert_eq!(certificates.key, "a key");
        Ok(Arc::new(self.0.clone()))
    }

    fn expiry(&self, _: &str) -> Result<Timestamp, String> {
        Err("no certificate is read".to_owned())
    }
}

/// A server of the second engine is healthy while its container runs, and one of the first as ever.
struct Servers(Arc<dyn Upstream>, Fake);

#[async_trait]
impl Upstream for Servers {
    async fn is_healthy(&self, server: SocketAddr, path: &str, within: Duration) -> bool {
        if server.ip().to_string() != SECOND {
            return self.0.is_healthy(server, path, within).await;
        }
        let mut containers = self.1.containers().into_iter().filter_map(|name| self.1.peek(&name));
        containers.any(|c| c.port == Some(server.port()) && c.is_running())
    }
}

/// Two engines, and an instance on the first one.
struct Scene {
    world: Arc<World>,
    first: Fake,
    second: Fake,
    engine: EngineId,
    id: InstanceId,
    clock: ManualClock,
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(Scene) -> F) {
    let clock = world::clock();
    let second = world::engine(&clock);
    let there = second.clone();
    let replace = |ports: Ports| Ports {
        engines: Arc::new(Second(there.clone())),
        upstream: Arc::new(Servers(ports.upstream.clone(), there)),
        ..ports
    };
    run_by(&clock.clone(), replace, |world, first| async move {
        let engine = add(&world).await;
        let id = create(&world).await;
        until(&world, id, S::Running, "at first").await;
        first.set_volume_bytes(&names::volume(id, Role::SqlDb), BYTES);
        test(Scene { world, first, second, engine, id, clock }).await;
    });
}

async fn add(world: &Arc<World>) -> EngineId {
    let now = world.ports.clock.now();
    let id: EngineId = world.ports.random.id(now);
    let pem = "-----BEGIN CERTIFICATE-----";
    let engine = AddedEngine {
        name: "second".parse().unwrap(),
        address: "10.0.0.2:2376".parse().unwrap(),
        private_address: SECOND.parse().unwrap(),
        identity: "second".into(),
        keys: EngineKeys::Tls {
            authority: pem.parse().unwrap(),
            certificate: pem.parse().unwrap(),
            key: world.ports.sealer.seal(&id.to_string(), "a key").unwrap(),
            expires_at: now,
        },
        renewals: 0,
        labels: BTreeMap::new(),
        draining: false,
        created_at: now,
        updated_at: now,
    };
    world.to::<Engines>(id).create(engine).await.unwrap();
    id
}

impl Scene {
    async fn move_to(&self, to: Option<EngineId>) {
        let to = to.map(|id| (id, self.world.store.get::<Engines>(&id).unwrap().unwrap()));
        self.world.to::<Instances>(self.id).ask(Command::Move { to }).await.unwrap();
    }

    /// Waits until the instance is in this state and no move is under way.
    async fn rests(&self, wanted: S, told: &str) -> Instance {
        comes_to::<Instances>(&self.world, self.id, told, |found| {
            found.is_some_and(|it| it.moving.is_none() && it.state == wanted)
        })
        .await;
        state(&self.world, self.id).unwrap()
    }

    /// The bytes of the database at an engine.
    async fn bytes(&self, engine: &Fake) -> Option<u64> {
        let name = names::volume(self.id, Role::SqlDb);
        let used = engine.disk_use(&BTreeMap::new()).await.unwrap();
        used.volumes.get(&name).copied().flatten()
    }

    fn needs(&self) -> u64 {
        let found = self.world.store.get::<RefCount>(&self.engine.to_string()).unwrap();
        found.map_or(0, |found| found.count)
    }

    /// The memory that is promised of both machines, in megabytes.
    fn promised(&self) -> [u64; 2] {
        [None, Some(self.engine)].map(|engine| {
            let promised = usage(&self.world.store, machine(engine)).unwrap();
            promised.of(Quota::InstanceMemory) >> 20
        })
    }

    /// Moves there and back. Wherever a step fails, the data is where the instance is.
    async fn goes_there_and_back(&self, told: &str) {
        for (to, engine) in [(Some(self.engine), &self.second), (None, &self.first)] {
            let from = state(&self.world, self.id).unwrap().engine;
            self.move_to(to).await;
            let moved = self.rests(S::Running, told).await;
            let why = moved.last_error.clone();
            assert_eq!(moved.engine, to, "{told}: {why:?}");
            assert_eq!(self.bytes(engine).await, Some(BYTES), "{told}");
            assert!(moved.left_behind.iter().any(|left| left.engine == from), "{told}");
        }
        // One that was not removed yet.
        assert!(self.needs() <= 1, "{told}");
    }
}

#[test]
fn an_instance_moves_there_and_back_and_leaves_nothing_in_the_end() {
    run(|scene| async move {
        let Scene { world, first, second, engine, id, clock } = &scene;
        scene.move_to(Some(*engine)).await;
        let moved = scene.rests(S::Running, "there").await;
        assert_eq!((moved.engine, scene.needs()), (Some(*engine), 1));
        let [nothing, all] = scene.promised();
        assert_eq!((nothing, all > 0), (0, true));
        assert_eq!(scene.bytes(second).await, Some(BYTES));
        assert_eq!((first.containers(), first.networks()), (vec![], vec![]));
        assert_eq!(scene.bytes(first).await, Some(BYTES), "the old volume stays for days");
        let refused =
            world.to::<Engines>(*engine).ask(actors::kinds::hosting::engines::Command::Remove);
        assert!(refused.await.is_err(), "it has an instance");

        // A stopped one stays stopped. Meanwhile it does not start.
        world.to::<Instances>(*id).ask(Command::Stop).await.unwrap();
        until(world, *id, S::Stopped, "to move").await;
        let mut held = second.hold(Operation::ReadVolume);
        scene.move_to(None).await;
        held.reached(1).await;
        assert_eq!(scene.promised(), [all, all], "both keep room for it");
        let refused = world.to::<Instances>(*id).ask(scene::START).await;
        assert!(matches!(refused, Err(Fault::NotNow(_))), "{refused:?}");
        held.release();
        let back = scene.rests(S::Stopped, "back").await;
        assert_eq!((back.engine, scene.needs()), (None, 1), "its volume is there still");
        assert_eq!(scene.promised(), [all, 0]);
        world.to::<Instances>(*id).ask(scene::START).await.unwrap();
        until(world, *id, S::Running, "back").await;
        assert_eq!(scene.bytes(first).await, Some(BYTES));

        clock.advance(Duration::from_secs(8 * 24 * 3600));
        world.to::<Instances>(*id).tell_if_there(Input::Due).await.unwrap();
        let begun = Instant::now();
        while scene.needs() > 0 {
            assert!(begun.elapsed() < WITHIN, "{:?}", state(world, *id));
            world::a_moment().await;
        }
        assert_eq!((second.containers(), second.volumes()), (vec![], vec![]));
        world
            .to::<Engines>(*engine)
            .ask(actors::kinds::hosting::engines::Command::Remove)
            .await
            .unwrap();
    });
}

#[test]
fn each_operation_of_a_move_may_fail_once_at_either_engine() {
    const AT_THE_OLD: [Operation; 3] =
        [Operation::Stop, Operation::ReadVolume, Operation::RemoveContainer];
    const AT_THE_NEW: [Operation; 7] = [
        Operation::EnsureImage,
        Operation::Inventory,
        Operation::RemoveVolume,
        Operation::EnsureVolume,
        Operation::WriteVolume,
        Operation::EnsureContainer,
        Operation::Start,
    ];
    run(|scene| async move {
        for fault in FAILURES {
            for (operations, engine) in
                [(&AT_THE_OLD[..], &scene.first), (&AT_THE_NEW[..], &scene.second)]
            {
                for operation in operations {
                    engine.inject(*operation, fault.clone(), Times::Once);
                    scene.goes_there_and_back(&format!("{operation:?} {fault:?}")).await;
                }
            }
        }
    });
}

#[test]
fn each_operation_of_a_move_may_be_done_twice() {
    const OPERATIONS: [Operation; 4] =
        [Operation::Stop, Operation::ReadVolume, Operation::EnsureContainer, Operation::Start];
    run(|scene| async move {
        let life = async |told: &str| scene.goes_there_and_back(told).await;
        let operations = OPERATIONS.each_ref().map(std::slice::from_ref);
        is_done_twice::<Instances>(&scene.world, &scene.first, &operations, life).await;
    });
}

#[test]
fn an_instance_stays_where_it_is_if_it_cannot_move() {
    run(|scene| async move {
        let Scene { world, first, second, engine, .. } = &scene;
        second.inject(Operation::WriteVolume, InjectedFault::FailBefore, Times::Always);
        scene.move_to(Some(*engine)).await;
        let stayed = scene.rests(S::Running, "it cannot be copied").await;
        assert_eq!(stayed.engine, None);
        let running = first.containers().into_iter().filter_map(|name| first.peek(&name));
        assert_eq!(running.filter(|container| container.is_running()).count(), 2);
        second.calm(Operation::WriteVolume);
        // What was copied is removed, and another attempt succeeds.
        comes_to::<Instances>(world, scene.id, "nothing is left", |found| {
            found.is_some_and(|instance| instance.left_behind.is_empty())
        })
        .await;
        assert_eq!((second.volumes(), scene.needs()), (vec![], 0));
        second.disconnect();
        scene.move_to(Some(*engine)).await;
        comes_to::<Instances>(world, scene.id, "the other engine is away", |found| {
            let why = found.and_then(|instance| instance.last_error.as_deref());
            why.is_some_and(|why| why.starts_with("it waits for the container engine"))
        })
        .await;
        scene.move_to(None).await;
        let stayed = scene.rests(S::Running, "it was called off").await;
        assert_eq!(stayed.engine, None);
        second.back();
        scene.goes_there_and_back("both are there").await;
    });
}

#[test]
fn an_engine_that_returns_finds_what_moved_stopped_and_not_removed() {
    run(|scene| async move {
        let Scene { world, first, second, engine, id, .. } = &scene;
        first.inject(Operation::RemoveContainer, InjectedFault::FailBefore, Times::Always);
        scene.move_to(Some(*engine)).await;
        scene.rests(S::Running, "there").await;
        let name = names::container(*id, Role::Server, 1);
        first.start(&name).await.unwrap();
        let begun = Instant::now();
        while first.peek(&name).is_some_and(|container| container.is_running()) {
            assert!(begun.elapsed() < WITHIN, "it is stopped");
            world::a_moment().await;
        }
        assert!(first.peek(&name).is_some(), "it stays");
        assert!(second.peek(&name).is_some_and(|container| container.is_running()));
        assert_eq!(world.hosts.status().orphans, 0);
    });
}

#[test]
fn an_instance_begins_anew_from_a_backup_where_its_engine_is_lost() {
    run(|scene| async move {
        let Scene { world, first, second, engine, id, .. } = &scene;
        scene.move_to(Some(*engine)).await;
        scene.rests(S::Running, "there").await;
        second.disconnect();
        first.on_exec(tools);
        let backup: BackupId = world.ports.random.id(world.ports.clock.now());
        let content = stream::iter([Ok(Bytes::from_static(b"a dump"))]).boxed();
        let written = world.ports.dumps.write(backup, u64::MAX, content).await.unwrap();
        world.ports.dumps.keep(backup, &written.sha256).await.unwrap();
        let (sha256, role) = (written.sha256, Role::SqlDb);
        let restore = InitialRestore { backup, sha256, role, begun: false, failures: 0 };
        let command = Command::Recover { to: None, restore };
        world.to::<Instances>(*id).ask(command).await.unwrap();
        let anew = scene.rests(S::Running, "anew").await;
        assert_eq!((anew.engine, anew.initial_restore), (None, None));
        let restored =
            first.executions().into_iter().filter(|it| it.call.exec.command[0] == "psql");
        assert!(restored.count() > 0, "the backup was restored");
        assert_eq!(scene.bytes(first).await, Some(0), "and not into what an earlier stay left");

        // The engine comes back after all: what runs there is stopped.
        second.back_with_containers();
        let running = || {
            let all = second.containers().into_iter().filter_map(|name| second.peek(&name));
            all.filter(|container| container.is_running()).count()
        };
        let begun = Instant::now();
        while running() > 0 {
            assert!(begun.elapsed() < WITHIN, "it is stopped");
            world::a_moment().await;
        }
        assert_eq!(scene.bytes(second).await, Some(BYTES), "its volume stays");
        assert_eq!(scene.needs(), 1);
        world.to::<Instances>(*id).ask(Command::LoseEngine(*engine)).await.unwrap();
        assert_eq!(scene.needs(), 0);
    });
}

#[test]
fn a_move_that_is_called_off_removes_what_it_made_and_keeps_what_is_older() {
    run(|scene| async move {
        let Scene { world, second, engine, id, .. } = &scene;
        let waits = async |told: &str| {
            comes_to::<Instances>(world, *id, told, |found| {
                let why = found.and_then(|instance| instance.last_error.as_deref());
                why.is_some_and(|why| why.starts_with("it waits for the container engine"))
            })
            .await;
        };
        // One that is stopped has nothing else to do, and forgets it all the same.
        world.to::<Instances>(*id).ask(Command::Stop).await.unwrap();
        until(world, *id, S::Stopped, "to move").await;
        second.disconnect();
        scene.move_to(Some(*engine)).await;
        waits("the other engine is away").await;
        second.back();
        scene.move_to(None).await;
        scene.rests(S::Stopped, "called off").await;
        comes_to::<Instances>(world, *id, "nothing is left", |found| {
            found.is_some_and(|instance| instance.left_behind.is_empty())
        })
        .await;
        assert_eq!((second.networks(), scene.needs()), (vec![], 0));

        world.to::<Instances>(*id).ask(scene::START).await.unwrap();
        until(world, *id, S::Running, "again").await;
        scene.goes_there_and_back("an earlier stay").await;
        second.disconnect();
        scene.move_to(Some(*engine)).await;
        waits("the other engine is away again").await;
        // What members ask for does not wait with it.
        world.to::<Instances>(*id).ask(Command::Stop).await.unwrap();
        until(world, *id, S::Stopped, "while it waits").await;
        scene.move_to(None).await;
        let stayed = scene.rests(S::Stopped, "called off again").await;
        let kept = stayed.left_behind.iter().find(|left| left.engine == Some(*engine));
        assert!(kept.is_some_and(|left| left.until.is_some()), "{:?}", stayed.left_behind);
        assert!(stayed.not_moved.is_some());
    });
}
