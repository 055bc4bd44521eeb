//! Networks, volumes, and the inventory.

use super::bench::Bench;
use container_engine::{EngineError, Labels, Mount, Phase};
use std::time::Duration;

pub async fn it_says_what_it_is(bench: &dyn Bench) {
    let about = bench.engine().about().await.unwrap();
    assert!(!about.version.is_empty());
    assert!(about.api.starts_with("1."), "{about:?}");
    assert!(about.memory > 64 << 20 && about.cpus > 0, "{about:?}");
}

pub async fn networks_and_volumes_are_made_once_and_gone_is_fine(bench: &dyn Bench) {
    let (engine, labels) = (bench.engine(), bench.labels());
    let (network, volume) = (bench.name("net"), bench.name("vol"));
    let at_once = (0..4).map(|_| engine.ensure_network(&network, &labels));
    for made in futures_util::future::join_all(at_once).await {
        made.unwrap();
    }
    engine.ensure_volume(&volume, &labels).await.unwrap();
    engine.ensure_volume(&volume, &labels).await.unwrap();
    let inventory = engine.inventory(&labels).await.unwrap();
    assert_eq!(inventory.networks.len(), 1);
    assert_eq!(inventory.networks[0].name, network);
    assert_eq!(inventory.networks[0].labels, labels);
    assert_eq!(inventory.volumes.len(), 1);
    assert_eq!(inventory.volumes[0].name, volume);
    assert_eq!(inventory.volumes[0].labels, labels);
    for _ in 0..2 {
        engine.remove_network(&network).await.unwrap();
        engine.remove_volume(&volume).await.unwrap();
    }
    let inventory = engine.inventory(&labels).await.unwrap();
    assert!(inventory.networks.is_empty() && inventory.volumes.is_empty());
}

pub async fn a_volume_of_somebody_else_is_a_conflict(bench: &dyn Bench) {
    let volume = bench.name("vol");
    bench.add_foreign_volume(&volume).await;
    let labels = Labels::from([("svc.owner".to_owned(), "us".to_owned())]);
    let error = bench.engine().ensure_volume(&volume, &labels).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error:?}");
}

pub async fn a_network_that_is_used_is_not_removed(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let error = bench.engine().remove_network(&spec.network).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused(_)), "{error:?}");
    bench.engine().remove_container(&spec.name).await.unwrap();
    bench.engine().remove_network(&spec.network).await.unwrap();
}

pub async fn a_volume_that_is_used_is_not_removed(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    let volume = bench.name("vol");
    spec.mounts = vec![Mount { volume: volume.clone(), path: "/data".to_owned() }];
    bench.engine().ensure_volume(&volume, &bench.labels()).await.unwrap();
    bench.make(&spec).await;
    let error = bench.engine().remove_volume(&volume).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused(_)), "{error:?}");
    bench.engine().remove_container(&spec.name).await.unwrap();
    bench.engine().remove_volume(&volume).await.unwrap();
}

pub async fn an_inventory_shows_only_ours(bench: &dyn Bench) {
    let engine = bench.engine();
    let (mut a, mut b) = (bench.spec("a"), bench.spec("b"));
    a.labels.insert("svc.owner".to_owned(), "a".to_owned());
    a.port = Some(8080);
    b.labels.insert("svc.owner".to_owned(), "b".to_owned());
    let running = bench.start(&a).await;
    let made = bench.make(&b).await;
    bench.add_foreign_container(&bench.name("foreign")).await;

    let inventory = engine.inventory(&a.labels).await.unwrap();
    assert_eq!(inventory.containers.len(), 1);
    let found = &inventory.containers[0];
    assert_eq!((&found.name, &found.id, &found.image), (&a.name, &running.id, &running.image));
    assert_eq!(found.labels, running.labels);
    assert_eq!(found.spec_hash(), Some(a.hash().as_str()));
    assert_eq!(found.phase, Phase::Running);
    assert_eq!(found.port, running.port);
    assert_eq!(found.created_at.as_seconds(), running.created_at.as_seconds());
    assert!(inventory.at >= running.started_at.unwrap());

    // An object must carry both labels, not only one of them.
    let mut labels = bench.labels();
    labels.insert("svc.owner".to_owned(), "c".to_owned());
    assert!(engine.inventory(&labels).await.unwrap().containers.is_empty());

    bench.kill(&a.name).await;
    bench.see_until(&a.name, |container| !container.is_running()).await;
    bench.pass(Duration::from_millis(50)).await;
    let both = engine.inventory(&bench.labels()).await.unwrap().containers;
    let phase = |name: &str| both.iter().find(|c| c.name == name).map(|c| c.phase);
    assert_eq!(phase(&a.name), Some(Phase::Exited { code: Some(137), out_of_memory: false }));
    assert_eq!(phase(&made.name), Some(Phase::Created));
}
