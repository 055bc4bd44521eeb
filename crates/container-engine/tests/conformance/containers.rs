//! The life of a container.

use super::{
    bench::{Bench, command},
    programs::{IS_SICK, IS_WELL, MISSING, SERVER, SEVEN, STUBBORN},
};
use container_engine::{EngineError, Health, HealthCommand, LogQuery, Mount, Phase};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(5);

pub async fn made_twice_is_one(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.engine().ensure_network(&spec.network, &spec.labels).await.unwrap();
    let at_once = (0..3).map(|_| bench.engine().ensure_container(&spec));
    let made = futures_util::future::try_join_all(at_once).await.unwrap();
    let first = bench.make(&spec).await;
    assert!(made.iter().all(|container| container.id == first.id), "{made:?}");
    assert_eq!(first.phase, Phase::Created);
    assert_eq!(first.name, spec.name);
    assert_eq!(first.spec_hash(), Some(spec.hash().as_str()));
    assert_eq!((first.port, first.health, first.started_at), (None, None, None));
    assert!(first.image.starts_with("sha256:"), "{first:?}");
    assert_eq!(bench.make(&spec).await.id, first.id);
    // Also while the container runs.
    bench.engine().start(&spec.name).await.unwrap();
    let running = bench.make(&spec).await;
    assert_eq!(running.id, first.id);
    assert!(running.is_running());
    assert!(running.started_at.unwrap() >= running.created_at);
}

pub async fn another_spec_takes_the_place_of_what_does_not_run(bench: &dyn Bench) {
    let spec = bench.spec("a");
    let first = bench.make(&spec).await;
    let mut other = spec.clone();
    other.env.insert("A".to_owned(), "b".to_owned());
    let second = bench.make(&other).await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.spec_hash(), Some(other.hash().as_str()));

    bench.engine().start(&spec.name).await.unwrap();
    let error = bench.engine().ensure_container(&spec).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error:?}");
    bench.engine().stop(&spec.name, GRACE).await.unwrap();
    assert_eq!(bench.make(&spec).await.phase, Phase::Created);
}

pub async fn a_foreign_name_is_a_conflict(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.engine().ensure_network(&spec.network, &spec.labels).await.unwrap();
    bench.add_foreign_container(&spec.name).await;
    let error = bench.engine().ensure_container(&spec).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error:?}");
    // A foreign container is not removed after its end either.
    bench.kill(&spec.name).await;
    bench.see_until(&spec.name, |container| !container.is_running()).await;
    let error = bench.engine().ensure_container(&spec).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error:?}");
    assert!(bench.engine().container(&spec.name).await.unwrap().is_some());
}

pub async fn started_stopped_and_removed_twice(bench: &dyn Bench) {
    let (engine, spec) = (bench.engine(), bench.spec("a"));
    let started = bench.start(&spec).await;
    engine.start(&spec.name).await.unwrap();
    assert_eq!(bench.see(&spec.name).await.started_at, started.started_at);

    engine.stop(&spec.name, GRACE).await.unwrap();
    engine.stop(&spec.name, GRACE).await.unwrap();
    let stopped = bench.see(&spec.name).await;
    // The request may come before the program listens to it. Then it ends by the signal (128 + 15).
    let Phase::Exited { code: Some(0 | 143), out_of_memory: false } = stopped.phase else {
        panic!("{stopped:?}")
    };
    engine.start(&spec.name).await.unwrap();
    let again = bench.see(&spec.name).await;
    assert_eq!(again.id, started.id);
    assert!(again.started_at > started.started_at);

    // First running, then missing.
    engine.remove_container(&spec.name).await.unwrap();
    engine.remove_container(&spec.name).await.unwrap();
    assert_eq!(engine.container(&spec.name).await.unwrap(), None);
    engine.stop(&spec.name, GRACE).await.unwrap();
}

pub async fn who_ignores_the_request_to_end_is_killed(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(STUBBORN));
    bench.start(&spec).await;
    // The program needs time to install its signal handler.
    bench.pass(Duration::from_millis(500)).await;
    bench.engine().stop(&spec.name, Duration::from_millis(200)).await.unwrap();
    let killed = bench.see(&spec.name).await.phase;
    assert_eq!(killed, Phase::Exited { code: Some(137), out_of_memory: false });
}

pub async fn an_exit_code_is_seen(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(SEVEN));
    spec.port = Some(8080);
    bench.start(&spec).await;
    let ended = bench.see_until(&spec.name, |container| !container.is_running()).await;
    assert_eq!(ended.phase, Phase::Exited { code: Some(7), out_of_memory: false });
    assert_eq!((ended.port, ended.health), (None, None));
    let inventory = bench.engine().inventory(&spec.labels).await.unwrap();
    assert_eq!(inventory.containers[0].phase, ended.phase);
}

pub async fn what_cannot_be_started_is_refused(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(MISSING));
    bench.make(&spec).await;
    // Behind an init process the engine itself starts well, and only the program fails.
    match bench.engine().start(&spec.name).await {
        Err(error) => assert!(matches!(error, EngineError::Refused(_)), "{error:?}"),
        Ok(()) => {
            let ended = bench.see_until(&spec.name, |container| !container.is_running()).await;
            let Phase::Exited { code, .. } = ended.phase else { panic!("{ended:?}") };
            assert_eq!(code, Some(127));
        }
    }
}

pub async fn a_port_is_published_anew_with_every_start(bench: &dyn Bench) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(SERVER));
    spec.port = Some(8080);
    assert_eq!(bench.make(&spec).await.port, None);
    for _ in 0..2 {
        bench.engine().start(&spec.name).await.unwrap();
        let port = bench.see(&spec.name).await.port.unwrap();
        assert_ne!(bench.answers(port).await, Some(false));
        bench.engine().stop(&spec.name, GRACE).await.unwrap();
        assert_eq!(bench.see(&spec.name).await.port, None);
    }
}

fn health(words: &[&str]) -> Option<HealthCommand> {
    Some(HealthCommand {
        command: command(words),
        interval: Duration::from_millis(500),
        timeout: Duration::from_secs(5),
        retries: 1,
        start_period: Duration::ZERO,
    })
}

pub async fn health_is_what_its_command_says(bench: &dyn Bench) {
    let (mut well, mut sick, none) = (bench.spec("well"), bench.spec("sick"), bench.spec("none"));
    well.health = health(IS_WELL);
    sick.health = health(IS_SICK);
    assert!(bench.start(&well).await.health.is_some());
    assert!(bench.start(&sick).await.health.is_some());
    assert_eq!(bench.start(&none).await.health, None);
    bench.see_until(&well.name, |container| container.health == Some(Health::Healthy)).await;
    bench.see_until(&sick.name, |container| container.health == Some(Health::Unhealthy)).await;
    let inventory = bench.engine().inventory(&bench.labels()).await.unwrap();
    let health = |name: &str| {
        inventory.containers.iter().find(|container| container.name == name).unwrap().health
    };
    assert_eq!(health(&well.name), Some(Health::Healthy));
    assert_eq!(health(&sick.name), Some(Health::Unhealthy));
    assert_eq!(health(&none.name), None);
    bench.engine().stop(&well.name, GRACE).await.unwrap();
    assert_eq!(bench.see(&well.name).await.health, None);
}

pub async fn what_happens_behind_our_back_is_seen(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    bench.kill(&spec.name).await;
    let killed = bench.see_until(&spec.name, |container| !container.is_running()).await;
    assert_eq!(killed.phase, Phase::Exited { code: Some(137), out_of_memory: false });
    bench.vanish(&spec.name).await;
    assert_eq!(bench.engine().container(&spec.name).await.unwrap(), None);
    assert_eq!(bench.make(&spec).await.phase, Phase::Created);
}

pub async fn a_network_that_was_replaced_is_joined_anew(bench: &dyn Bench) {
    let (engine, spec) = (bench.engine(), bench.spec("a"));
    let first = bench.start(&spec).await;
    engine.stop(&spec.name, GRACE).await.unwrap();
    bench.vanish_network(&spec.network).await;
    let error = engine.start(&spec.name).await.unwrap_err();
    assert!(matches!(error, EngineError::Missing(_)), "{error:?}");
    let second = bench.make(&spec).await;
    assert_ne!(second.id, first.id);
    engine.start(&spec.name).await.unwrap();
    // A container whose network was not replaced is kept.
    engine.stop(&spec.name, GRACE).await.unwrap();
    assert_eq!(bench.make(&spec).await.id, second.id);
}

pub async fn what_is_missing_is_said(bench: &dyn Bench) {
    let (engine, mut spec) = (bench.engine(), bench.spec("a"));
    let name = spec.name.clone();
    assert_eq!(engine.container(&name).await.unwrap(), None);
    assert_eq!(engine.usage(&name).await.unwrap(), None);
    let is_missing = |error: &EngineError| matches!(error, EngineError::Missing(_));
    assert!(is_missing(&engine.start(&name).await.unwrap_err()));
    let query = LogQuery { tail: 10, since: None, stream: None };
    assert!(is_missing(&engine.logs(&name, query).await.unwrap_err()));
    let exec = || super::bench::exec(&["true"]);
    assert!(is_missing(&engine.exec(&name, exec(), None).await.err().unwrap()));

    assert!(is_missing(&engine.ensure_container(&spec).await.unwrap_err()), "no network");
    engine.ensure_network(&spec.network, &spec.labels).await.unwrap();
    spec.mounts = vec![Mount { volume: bench.name("vol"), path: "/data".to_owned() }];
    assert!(is_missing(&engine.ensure_container(&spec).await.unwrap_err()), "no volume");
    spec.mounts.clear();
    let mut imageless = spec.clone();
    imageless.image = "svc-test/none:1".to_owned();
    let error = engine.ensure_container(&imageless).await.unwrap_err();
    assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");

    // A container that does not run accepts no programs.
    bench.make(&spec).await;
    let error = engine.exec(&name, exec(), None).await.err().unwrap();
    assert!(matches!(error, EngineError::Refused(_)), "{error:?}");
    assert_eq!(engine.logs(&name, query).await.unwrap(), []);
}
