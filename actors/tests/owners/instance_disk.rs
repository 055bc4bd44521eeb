//! What instances hold on the disk of an engine that is nearly full.

use super::{
    harness::{comes_to, run_by},
    instances::{create, state, until},
    scene, world,
};
use actors::{
    kinds::hosting::{instances::Instances, names},
    ports::Ports,
};
use container_engine::Disk;
use contract::{
    Fault,
    authentication::Tier,
    instances::{InstanceState as S, Role},
    quotas::Quota,
};
use std::sync::Arc;

/// What instances write is on the disk of the engine, which is not that of the service everywhere.
#[test]
fn while_the_disk_of_the_engine_is_nearly_full_an_organization_at_its_limit_is_stopped() {
    run_by(
        &world::clock(),
        |ports| limited(ports, 200 << 20),
        |world, engine| async move {
            let id = create(&world).await;
            until(&world, id, S::Running, "at first").await;
            engine.set_volume_bytes(&engine.volumes()[0], 201 << 20);
            engine.set_disk(Disk { bytes: 100 << 30, free: 1 << 30 });
            until(&world, id, S::Stopped, "it holds more than its limit").await;
            assert_eq!(world.check_room(0), Err(Fault::NoRoom));
            engine.set_disk(Disk { bytes: 100 << 30, free: 50 << 30 });
            comes_to::<Instances>(&world, id, "there is room", |_| world.check_room(0).is_ok())
                .await;
        },
    );
}

/// Organizations may have so many bytes on the disk.
fn limited(ports: Ports, bytes: u64) -> Ports {
    let mut site = (*ports.site).clone();
    site.quotas.set(Tier::Free, Quota::InstanceDisk, Some(bytes));
    Ports { site: Arc::new(site), ..ports }
}

/// All quotas together can be more than the disk has.
#[test]
fn on_a_full_disk_an_instance_that_grows_waits_for_room_also_within_its_quota() {
    run_by(
        &world::clock(),
        |ports| limited(ports, 1 << 30),
        |world, engine| async move {
            let [grows, rests] = [create(&world).await, create(&world).await];
            for id in [grows, rests] {
                until(&world, id, S::Running, "at first").await;
            }
            let volume = names::volume(grows, Role::SqlDb);
            let holds = |bytes: u64| {
                engine.set_volume_bytes(&volume, bytes);
                comes_to::<Instances>(&world, grows, "it is measured", move |instance| {
                    instance.and_then(|instance| instance.disk_bytes) >= Some(bytes)
                })
            };
            holds(50 << 20).await;
            engine.set_disk(Disk { bytes: 100 << 30, free: 1 << 30 });
            comes_to::<Instances>(&world, grows, "it is full", |_| world.check_room(0).is_err())
                .await;
            holds(400 << 20).await;
            until(&world, grows, S::Stopped, "it grew").await;
            assert_eq!(state(&world, rests).unwrap().state, S::Running);
            let start = || world.to::<Instances>(grows).ask(scene::START);
            assert_eq!(start().await.err(), Some(Fault::NoRoom));
            engine.set_disk(Disk { bytes: 100 << 30, free: 50 << 30 });
            comes_to::<Instances>(&world, grows, "there is room", |instance| {
                instance.is_some_and(|instance| !instance.awaits_room)
            })
            .await;
            start().await.unwrap();
            until(&world, grows, S::Running, "it may run again").await;
        },
    );
}
