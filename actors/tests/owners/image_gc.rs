//! The images that deployments built: what is left of them, and what their organization may have.

use super::{
    harness::{comes_to, run_by},
    instances::{create, state, until},
    retention::{begin, ends},
    world::clock,
};
use actors::{
    background::image_gc::prune,
    kinds::{
        hosting::{deployments::Deployments, image_builds::quotas::minutes, names},
        people::{apps::Apps, tenant::organization},
    },
    ports::Ports,
};

use contract::{
    authentication::Tier, deployments::DeploymentState, instances::InstanceState, quotas::Quota,
};
use std::{sync::Arc, time::Duration};

/// The size of each image of the fake engine.
const SIZE: u64 = 64 << 20;

#[test]
fn images_that_serve_no_longer_go_where_there_is_no_room_for_more() {
    let clock = clock();
    let time = clock.clone();
    let limited = |ports: Ports| {
        let mut site = (*ports.site).clone();
        site.quotas.set(Tier::Free, Quota::ImageBytes, Some(SIZE + 1));
        site.quotas.set(Tier::Free, Quota::BuildMinutes, Some(3));
        Ports { site: Arc::new(site), ..ports }
    };
    run_by(&clock, limited, |world, _| async move {
        let instance = create(&world).await;
        until(&world, instance, InstanceState::Running, "at first").await;
        let app = state(&world, instance).unwrap().app_id;
        let images = async || {
            let labels = names::of_installation(&world.ports.site.installation);
            let all = world.ports.engine.images(&labels).await.unwrap();
            all.into_iter().filter(|image| image.labels.get("svc.app") == Some(&app.to_string()))
        };
        let refused = async |quota: &str| {
            let id = begin(&world, instance).await;
            ends(&world, id, DeploymentState::Failed).await;
            comes_to::<Deployments>(&world, id, "it is refused", |found| {
                found.unwrap().deployment.error.as_ref().is_some_and(|why| why.contains(quota))
            })
            .await;
        };
        let measured = || world.store.get::<Apps>(&app).unwrap().unwrap().image_bytes;

        for n in 1..=2 {
            let id = begin(&world, instance).await;
            ends(&world, id, DeploymentState::Live).await;
            assert_eq!((images().await.count(), measured()), (n, n as u64 * SIZE));
        }
        refused("quota imageBytes").await;
        prune(&world, world.hosts.own()).await.unwrap();
        assert_eq!(images().await.count(), 2, "young ones stay");
        time.advance(Duration::from_secs(2 * 3600));
        prune(&world, world.hosts.own()).await.unwrap();
        assert_eq!((images().await.count(), measured()), (1, SIZE), "the one that serves");
        let third = begin(&world, instance).await;
        ends(&world, third, DeploymentState::Live).await;

        let of = organization(&world.store, app).unwrap();
        let used = minutes(&world.store, of, world.ports.clock.now()).unwrap();
        assert_eq!(used, 3, "each build counts a minute at least, and what was refused none");
        // The last image that served leaves room, but there are no minutes.
        time.advance(Duration::from_secs(2 * 3600));
        prune(&world, world.hosts.own()).await.unwrap();
        refused("quota buildMinutes").await;
        time.advance(Duration::from_secs(31 * 24 * 3600));
        assert_eq!(minutes(&world.store, of, world.ports.clock.now()), Ok(0), "a new month");
    });
}
