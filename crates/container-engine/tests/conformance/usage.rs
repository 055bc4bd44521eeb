//! The resource usage of containers.

use super::{
    bench::{Bench, command},
    programs::BUSY,
};
use std::time::Duration;

pub async fn two_samples_make_a_rate(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(BUSY));
    spec.limits.cpu_millis = 300;
    let started_at = bench.start(&spec).await.started_at;
    bench.pass(Duration::from_millis(500)).await;
    let first = bench.engine().usage(&spec.name).await.unwrap().unwrap();
    bench.pass(Duration::from_secs(3)).await;
    let second = bench.engine().usage(&spec.name).await.unwrap().unwrap();
    assert_eq!((Some(first.started_at), first.started_at), (started_at, second.started_at));
    let nanos = second.cpu_nanos - first.cpu_nanos;
    let share = nanos as f64 / second.at.since(first.at).as_nanos() as f64;
    // A busy machine gives it little.
    assert!((0.001..0.6).contains(&share), "it is limited to 0.3 and used {share}");
    assert_eq!(second.memory_limit, spec.limits.memory);
    assert!(second.memory > 0 && second.memory < spec.limits.memory, "{second:?}");
    assert!(second.pids > 0, "{second:?}");
}

pub async fn what_does_not_run_uses_nothing(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.make(&spec).await;
    assert_eq!(bench.engine().usage(&spec.name).await.unwrap(), None);
    bench.engine().start(&spec.name).await.unwrap();
    assert!(bench.engine().usage(&spec.name).await.unwrap().is_some());
    bench.engine().stop(&spec.name, Duration::from_secs(5)).await.unwrap();
    assert_eq!(bench.engine().usage(&spec.name).await.unwrap(), None);
    // The samples of two runs can be told apart.
    bench.engine().start(&spec.name).await.unwrap();
    let again = bench.engine().usage(&spec.name).await.unwrap().unwrap();
    assert_eq!(Some(again.started_at), bench.see(&spec.name).await.started_at);
}
