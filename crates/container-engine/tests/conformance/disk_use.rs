//! What volumes and containers hold on the disk.

use super::{
    bench::Bench,
    real::{Real, on_docker},
};
use bollard::query_parameters::{ListContainersOptionsBuilder, ListVolumesOptionsBuilder};
use container_engine::{Capability, ContainerSpec, DiskUse, Mount};
use std::{collections::HashMap, time::Duration};

const MIB: u64 = 1 << 20;

/// A container with a volume, `/data`. It may write elsewhere too.
async fn with_volume(bench: &dyn Bench) -> (ContainerSpec, String) {
    let (mut spec, volume) = (bench.spec("a"), bench.name("vol"));
    spec.mounts = vec![Mount { volume: volume.clone(), path: "/data".to_owned() }];
    spec.read_only = false;
    bench.engine().ensure_volume(&volume, &bench.labels()).await.unwrap();
    bench.start(&spec).await;
    (spec, volume)
}

fn is_about(bytes: Option<u64>, mebibytes: u64) -> bool {
    bytes.is_some_and(|bytes| bytes.abs_diff(mebibytes * MIB) <= MIB)
}

pub async fn what_is_written_is_counted_until_it_is_removed(bench: &dyn Bench) {
    let (engine, labels) = (bench.engine(), bench.labels());
    bench.add_foreign_volume(&bench.name("foreign")).await;
    let (spec, volume) = with_volume(bench).await;
    let before = engine.disk_use(&labels).await.unwrap();
    assert!(is_about(before.volumes[&volume], 0), "{before:?}");
    assert!(is_about(before.containers[&spec.name], 0), "{before:?}");

    bench.write(&spec.name, "/data/x", 8 * MIB).await;
    bench.write(&spec.name, "/x", 3 * MIB).await;
    let running = engine.disk_use(&labels).await.unwrap();
    engine.stop(&spec.name, Duration::from_secs(5)).await.unwrap();
    let stopped = engine.disk_use(&labels).await.unwrap();
    for held in [&running, &stopped] {
        assert_eq!((held.volumes.len(), held.containers.len()), (1, 1), "{held:?}");
        assert!(is_about(held.volumes[&volume], 8), "{held:?}");
        assert!(is_about(held.containers[&spec.name], 3), "{held:?}");
        assert!(held.disk.is_some_and(|disk| disk.bytes > disk.free), "{held:?}");
    }

    engine.remove_container(&spec.name).await.unwrap();
    let left = engine.disk_use(&labels).await.unwrap();
    assert!(left.containers.is_empty() && is_about(left.volumes[&volume], 8), "{left:?}");
    engine.remove_volume(&volume).await.unwrap();
    assert_eq!(engine.disk_use(&labels).await.unwrap(), DiskUse::default());
}

pub async fn without_volumes_and_containers_there_is_nothing(bench: &dyn Bench) {
    bench.add_foreign_volume(&bench.name("foreign")).await;
    bench.add_foreign_container(&bench.name("b")).await;
    assert_eq!(bench.engine().disk_use(&bench.labels()).await.unwrap(), DiskUse::default());
}

/// Creates volumes, and returns their names.
async fn volumes(bench: &dyn Bench, count: u32) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|n| bench.name(&format!("vol-{n}"))).collect();
    for name in &names {
        bench.engine().ensure_volume(name, &bench.labels()).await.unwrap();
    }
    names
}

/// Whether a container that reads for the test is there.
async fn has_reader(real: &Real) -> bool {
    let label = vec![format!("svc.disk-use={}", real.bench().run())];
    let filters = HashMap::from([("label", label)]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    !real.behind().list_containers(Some(options)).await.unwrap().is_empty()
}

#[test]
fn more_volumes_than_one_container_reads() {
    on_docker("disk_use::more_volumes_than_one_container_reads", |real| Box::pin(many(real)));
}

async fn many(real: &Real) {
    let (bench, mut names) = (real.bench(), volumes(real.bench(), 70).await);
    let held = bench.engine().disk_use(&bench.labels()).await.unwrap();
    names.sort();
    assert_eq!(held.volumes.keys().cloned().collect::<Vec<_>>(), names);
    assert!(held.volumes.values().all(|bytes| is_about(*bytes, 0)), "{held:?}");
    assert!(!has_reader(real).await);
}

#[test]
fn what_belongs_to_others_is_read_too() {
    on_docker("disk_use::what_belongs_to_others_is_read_too", |real| Box::pin(of_others(real)));
}

async fn of_others(real: &Real) {
    let bench = real.bench();
    let (mut spec, volume) = with_volume(bench).await;
    bench.engine().stop(&spec.name, Duration::from_secs(5)).await.unwrap();
    spec.capabilities = vec![Capability::Chown];
    bench.start(&spec).await;
    let script = "mkdir -m 0700 /data/own && head -c 8388608 /dev/urandom >/data/own/x \
                  && chown 1234:1234 /data/own";
    let ran = bench.run_in(&spec.name, &["sh", "-c", script]).await;
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let held = bench.engine().disk_use(&bench.labels()).await.unwrap();
    assert!(is_about(held.volumes[&volume], 8), "{held:?}");
}

#[test]
fn what_is_removed_meanwhile_goes_and_does_not_come_back() {
    let name = "disk_use::what_is_removed_meanwhile_goes_and_does_not_come_back";
    on_docker(name, |real| Box::pin(removed_meanwhile(real)));
}

async fn removed_meanwhile(real: &Real) {
    let (bench, engine, labels) = (real.bench(), real.bench().engine(), real.bench().labels());
    let names = volumes(bench, 24).await;
    let measure = async {
        for _ in 0..6 {
            let held = engine.disk_use(&labels).await.unwrap();
            assert!(held.volumes.len() >= 4, "{held:?}");
        }
    };
    let remove = async {
        for name in &names[4..] {
            engine.remove_volume(name).await.unwrap();
            bench.pass(Duration::from_millis(40)).await;
        }
    };
    futures_util::future::join(measure, remove).await;
    let all = ListVolumesOptionsBuilder::default().build();
    let there = real.behind().list_volumes(Some(all)).await.unwrap().volumes;
    let ours = there.iter().flatten().filter(|volume| volume.name.contains(bench.run())).count();
    assert_eq!(ours, 4);
}

#[test]
fn a_measurement_that_is_given_up_leaves_nothing() {
    let name = "disk_use::a_measurement_that_is_given_up_leaves_nothing";
    on_docker(name, |real| Box::pin(given_up(real)));
}

async fn given_up(real: &Real) {
    let (bench, labels) = (real.bench(), real.bench().labels());
    volumes(bench, 2).await;
    // The image may have to be made first.
    bench.engine().disk_use(&labels).await.unwrap();
    for millis in [20, 60, 120, 200] {
        let measure = bench.engine().disk_use(&labels);
        let _ = tokio::time::timeout(Duration::from_millis(millis), measure).await;
    }
    // The daemon may have made a container after it was given up. The next measurement removes it.
    bench.engine().disk_use(&labels).await.unwrap();
    for _ in 0..50 {
        if !has_reader(real).await {
            return;
        }
        bench.pass(Duration::from_millis(200)).await;
    }
    panic!("a container is left");
}
