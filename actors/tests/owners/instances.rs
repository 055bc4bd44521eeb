//! The owners of instances on an engine that fails on demand.

use super::{
    harness::{WITHIN, comes_to, fails_once, is_done_twice, pairs, run},
    scene, world,
};
use actix_rt::{Arbiter, System};
use actors::kinds::{
    hosting::{
        instances::{Command, Creation, ForApp, Instance, Instances, metrics, route},
        names,
        templates::TemplateClaim,
    },
    people::{
        apps::App,
        organizations::{self, Organizations},
        projects::Projects,
    },
    world::World,
};
use container_engine::{
    Engine,
    fake::{Fake, Operation},
};
use contract::{
    Fault, InstanceId, ProjectId,
    instances::{InstanceState as S, Role},
    projects::{Project, ProjectState},
};
use std::{sync::Arc, thread, time::Instant};

/// Creates a backend of the shipped template.
pub async fn create(world: &Arc<World>) -> InstanceId {
    create_from(world, "parse-server-postgresql").await
}

/// Creates an instance of a shipped template, with database and server.
pub async fn create_from(world: &Arc<World>, slug: &str) -> InstanceId {
    let project = scene::instance(world.ports.clock.now()).project_id;
    create_in(world, project, slug).await
}

/// Creates an instance of a shipped template in a project, which is made if it is missing, with an
/// organization of its own.
pub async fn create_in(world: &Arc<World>, project_id: ProjectId, slug: &str) -> InstanceId {
    let now = world.ports.clock.now();
    let claim = TemplateClaim::Slug { slug: slug.parse().unwrap() };
    let (_, template) = world.store.held_by(&claim).unwrap().unwrap();
    let mut instance = scene::instance(now);
    instance.project_id = project_id;
    instance.template_id = template.state.id;
    instance.app_id = world.ports.random.id(now);
    for service in &mut instance.services {
        let services = &template.state.versions[0].services;
        let template = services.iter().find(|template| template.role == service.role).unwrap();
        service.live.definition.service = template.clone();
        service.live.image.image_id = Some(template.image_id);
        service.live.image.version = template.image_version.clone();
        service.live.image.reference = None;
    }
    let id: InstanceId = world.ports.random.id(now);
    for name in ["sql_password", "master_key", "superadmin_password"] {
        let secret = world.ports.sealer.seal(&id.to_string(), "secret").unwrap();
        instance.secrets.insert(name.into(), secret);
    }
    project(world, instance.project_id).await;
    let app = App::new(instance.project_id, instance.name.clone(), now);
    let creation = Creation {
        instance,
        template,
        images: vec![],
        engine: None,
        app: ForApp::New(Box::new(app)),
    };
    world.to::<Instances>(id).create(creation).await.unwrap();
    id
}

/// Makes a project in an organization of its own, unless it is there. Work for its apps takes turns by the owner
/// of the organization.
async fn project(world: &World, id: ProjectId) {
    if world.store.get::<Projects>(&id).unwrap().is_some() {
        return;
    }
    let (now, random) = (world.ports.clock.now(), &world.ports.random);
    let organization_id = random.id(now);
    let shop = organizations::New { name: "Shop".parse().unwrap(), owner: random.id(now) };
    world.to::<Organizations>(organization_id).create(shop).await.unwrap();
    let project = Project {
        id,
        organization_id,
        owner_id: None,
        name: "Shop".parse().unwrap(),
        description: None,
        member_ids: vec![],
        state: ProjectState::Active,
        created_at: now,
        updated_at: now,
    };
    world.to::<Projects>(id).create(project).await.unwrap();
}

pub fn state(world: &World, id: InstanceId) -> Option<Instance> {
    let found = world.store.get::<Instances>(&id).unwrap();
    found.map(|found| found.state.clone())
}

pub async fn until(world: &World, id: InstanceId, wanted: S, told: &str) {
    let wanted = |found: Option<&Instance>| found.is_some_and(|instance| instance.state == wanted);
    comes_to::<Instances>(world, id, told, wanted).await;
}

/// The whole life of an instance, from its creation to its deletion.
async fn live(world: &Arc<World>, engine: &Fake, told: &str) {
    let id = create(world).await;
    until(world, id, S::Running, told).await;
    world.to::<Instances>(id).ask(Command::Stop).await.unwrap();
    until(world, id, S::Stopped, told).await;
    world.to::<Instances>(id).ask(scene::START).await.unwrap();
    until(world, id, S::Running, told).await;
    let image = state(world, id).unwrap().service(Role::Server).unwrap().live.image.clone();
    let replacing = world.to::<Instances>(id).ask(scene::replace_with(1, image)).await.unwrap();
    assert!(replacing.is_in_transition(), "{told}");
    comes_to::<Instances>(world, id, told, |instance| {
        let server = instance.and_then(|instance| instance.service(Role::Server));
        server.is_some_and(|server| server.live.generation == 2 && server.candidate.is_none())
    })
    .await;
    world.to::<Instances>(id).ask(Command::Delete { data: true }).await.unwrap();
    comes_to::<Instances>(world, id, told, |instance| instance.is_none()).await;
    let left = (engine.containers(), engine.networks(), engine.volumes());
    assert_eq!(left, (vec![], vec![], vec![]), "{told}: nothing is left behind");
}

const USED: [Operation; 11] = [
    Operation::Resolve,
    Operation::EnsureImage,
    Operation::EnsureNetwork,
    Operation::EnsureVolume,
    Operation::EnsureContainer,
    Operation::Start,
    Operation::Stop,
    Operation::Container,
    Operation::RemoveContainer,
    Operation::RemoveNetwork,
    Operation::RemoveVolume,
];

#[test]
fn each_operation_may_fail_once_before_or_after_it_was_done() {
    for (operation, fault) in pairs(&USED) {
        run(|world, engine| async move {
            let live = async |told: &str| live(&world, &engine, told).await;
            fails_once(&engine, &[operation], fault, live).await;
        });
    }
}

#[test]
fn each_operation_may_be_done_twice_because_its_owner_was_restarted() {
    run(|world, engine| async move {
        let live = async |told: &str| live(&world, &engine, told).await;
        is_done_twice::<Instances>(
            &world,
            &engine,
            &USED.each_ref().map(std::slice::from_ref),
            live,
        )
        .await;
    });
}

/// The engine may carry out a request after its owner turned to something else, such as the end of a
/// cancelled deployment.
#[test]
fn a_container_that_the_engine_makes_too_late_is_removed() {
    run(|world, engine| async move {
        let told = "a late container";
        let id = create(&world).await;
        until(&world, id, S::Running, told).await;
        let first = names::container(id, Role::Server, 1);
        let late = engine.spec(&first).unwrap();
        let image = state(&world, id).unwrap().service(Role::Server).unwrap().live.image.clone();
        world.to::<Instances>(id).ask(scene::replace_with(1, image)).await.unwrap();
        comes_to::<Instances>(&world, id, told, |instance| {
            let server = instance.and_then(|instance| instance.service(Role::Server));
            server.is_some_and(|server| server.live.generation == 2 && server.retired.is_empty())
        })
        .await;
        assert!(engine.peek(&first).is_none());
        let kept = engine.containers();
        engine.ensure_container(&late).await.unwrap();
        let begun = Instant::now();
        while engine.containers() != kept {
            assert!(begun.elapsed() < WITHIN, "{:?}", engine.containers());
            world::a_moment().await;
        }
    });
}

/// Those who look at the usage between two samples take nothing from them.
#[test]
fn every_sample_has_a_rate() {
    run(|world, _| async move {
        let id = create(&world).await;
        until(&world, id, S::Running, "sampled").await;
        let begun = Instant::now();
        let samples = loop {
            metrics::current(&world, id, &state(&world, id).unwrap()).await.unwrap();
            let now = world.ports.clock.now();
            let samples = metrics::history(&world.store, id, now, 60).unwrap();
            if samples.len() >= 2 {
                break samples;
            }
            assert!(begun.elapsed() < WITHIN, "{samples:?}");
            world::a_moment().await;
        };
        assert!(samples.iter().all(|sample| sample.cpu_percent.is_some()), "{samples:?}");
    });
}

#[test]
fn two_hundred_instances_converge_after_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let clock = world::clock();
    let engine = world::engine(&clock);
    let ids = System::new().block_on(async {
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let world = world::start(folder.path(), (&clock, &engine), &arbiters).await;
        let mut ids = Vec::new();
        for _ in 0..200 {
            ids.push(create(&world).await);
        }
        for id in &ids {
            until(&world, *id, S::Running, "at first").await;
        }
        for arbiter in &arbiters {
            arbiter.stop();
        }
        world.store.raw().close();
        ids
    });
    // The machine restarts: all containers are down, and some of them are gone.
    engine.disconnect();
    engine.back();
    for name in engine.containers().iter().step_by(7) {
        engine.vanish(name);
    }
    let begun = Instant::now();
    System::new().block_on(async {
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let world = world::start(folder.path(), (&clock, &engine), &arbiters).await;
        let running = |name: &String| engine.peek(name).is_some_and(|c| c.is_running());
        while engine.containers().iter().filter(|name| running(name)).count() < 400 {
            assert!(begun.elapsed() < WITHIN, "they come up");
            world::a_moment().await;
        }
        for id in &ids {
            until(&world, *id, S::Running, "after the start").await;
        }
    });
}

/// The engine comes to no end with the containers of one tenant.
#[test]
fn the_containers_of_one_tenant_leave_turns_at_the_engine_to_others() {
    run(|world, engine| async move {
        let of_one = thread::available_parallelism().map_or(1, usize::from);
        let mut held = engine.hold(Operation::EnsureContainer);
        let mut instances = Vec::new();
        for _ in 0..2 * of_one + 2 {
            instances.push(create(&world).await);
        }
        held.reached(of_one as u32).await;
        let elsewhere = world.ports.random.id(world.ports.clock.now());
        instances.push(create_in(&world, elsewhere, "parse-server-postgresql").await);
        held.reached(of_one as u32 + 1).await;
        world::a_moment().await;
        assert_eq!(engine.calls(Operation::EnsureContainer), of_one as u64 + 1);
        let waits = |found: Option<&Instance>| {
            let why = found.and_then(|instance| instance.last_error.as_deref());
            why.is_some_and(|why| why.starts_with("it waits for its turn"))
        };
        comes_to::<Instances>(&world, instances[2 * of_one], "it says why it waits", waits).await;
        held.release();
        for id in instances {
            until(&world, id, S::Running, "in turn").await;
        }
    });
}

/// An engine that starts gives ports anew, so that the port of one instance may be that of another.
#[test]
fn no_request_goes_to_a_container_until_all_are_observed_after_the_engine_was_away() {
    run(|world, engine| async move {
        let id = create(&world).await;
        until(&world, id, S::Running, "at first").await;
        let target = id.to_string();
        let waits = async |routed: bool| {
            let begun = Instant::now();
            while route(&world, &target).is_ok() != routed {
                assert!(begun.elapsed() < WITHIN, "routed: {routed}");
                world::a_moment().await;
            }
        };
        waits(true).await;
        let mut looks = engine.hold(Operation::Inventory);
        engine.disconnect();
        while !world.hosts.own().health.status().lost {
            world::a_moment().await;
        }
        assert!(route(&world, &target).is_ok(), "nothing starts there");
        engine.back_with_containers();
        waits(false).await;
        looks.reached(1).await;
        assert!(matches!(route(&world, &target), Err(Fault::Unavailable(_))));
        looks.release();
        waits(true).await;
    });
}

/// Containers and volume are removed while the instance is stopped, as `docker system prune` does it.
#[test]
fn an_instance_whose_volume_is_gone_starts_only_on_request() {
    run(|world, engine| async move {
        let told = "a volume is gone";
        let id = create(&world).await;
        until(&world, id, S::Running, told).await;
        world.to::<Instances>(id).ask(Command::Stop).await.unwrap();
        until(&world, id, S::Stopped, told).await;

        for container in engine.containers() {
            engine.vanish(&container);
        }
        world.to::<Instances>(id).ask(scene::START).await.unwrap();
        until(&world, id, S::Running, "a volume that is there is used again").await;

        world.to::<Instances>(id).ask(Command::Stop).await.unwrap();
        until(&world, id, S::Stopped, told).await;
        engine.vanish_volume(&names::volume(id, Role::SqlDb));
        for _ in 0..2 {
            world.to::<Instances>(id).ask(scene::START).await.unwrap();
            until(&world, id, S::Failed, told).await;
            let failed = state(&world, id).unwrap();
            assert!(
                failed.last_error.unwrap().starts_with("sqldb: the volume with its data is gone")
            );
            assert_eq!(engine.volumes(), [""; 0], "nothing is made in its place");
        }

        let without_data = Command::Start { accept_data_loss: true };
        world.to::<Instances>(id).ask(without_data).await.unwrap();
        until(&world, id, S::Running, told).await;
        assert_eq!(engine.volumes(), [names::volume(id, Role::SqlDb)]);
    });
}

/// Each instance has a network, and the engine has addresses for a certain number.
#[test]
fn an_instance_without_room_for_its_network_says_so_and_starts_when_there_is_room() {
    run(|world, engine| async move {
        let told = "networks";
        engine.set_most_networks(2);
        let [first, second] = [create(&world).await, create(&world).await];
        until(&world, first, S::Running, told).await;
        until(&world, second, S::Running, told).await;
        let third = create(&world).await;
        until(&world, third, S::Failed, told).await;
        let why = state(&world, third).unwrap().last_error.unwrap();
        assert!(
            why.contains(&format!("no room for the network {}", names::network(third))),
            "{why}"
        );
        assert_eq!(state(&world, second).unwrap().state, S::Running, "others go on");
        world.to::<Instances>(first).ask(Command::Delete { data: true }).await.unwrap();
        comes_to::<Instances>(&world, first, told, |instance| instance.is_none()).await;
        world.to::<Instances>(third).ask(scene::START).await.unwrap();
        until(&world, third, S::Running, told).await;
    });
}
