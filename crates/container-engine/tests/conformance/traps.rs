//! Traps: the real engine behaves unexpectedly here. Each case happened.

use super::{
    bench::{Bench, Ran, command, exec},
    images::{archive, built},
    real::{Real, on_docker},
};
use bollard::{models::NetworkCreateRequest, query_parameters::ListContainersOptionsBuilder};
use bytes::Bytes;
use container_engine::{BuildEvent, BuildSpec, EngineError, LogQuery, Output, Stream};
use futures_util::{StreamExt, future::join_all, stream};
use std::{collections::HashMap, io, time::Duration};

#[test]
fn output_that_is_read_slowly_arrives_whole() {
    on_docker("traps::output_that_is_read_slowly_arrives_whole", |real| Box::pin(slowly(real)));
}

/// Two seconds after a program has ended, the daemon discards output that was not read yet, and
/// reports success. This depends on the amount: all but the last pieces must fit into the buffers
/// in between.
async fn slowly(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    // Twelve programs that begin at once have some threads each.
    spec.limits.pids = 512;
    bench.start(&spec).await;
    let sizes = (0..12).map(|n| 1_000_000 + n * 100_000);
    let all = sizes.map(|size: usize| {
        let name = &spec.name;
        async move {
            let program = exec(&["head", "-c", &size.to_string(), "/dev/zero"]);
            // Programs with input end in another way.
            let input = size.is_multiple_of(200_000).then(|| stream::empty().boxed());
            let mut output = bench.engine().exec(name, program, input).await.unwrap();
            let first = match output.next().await {
                Some(Ok(Output::Out(first))) => first,
                other => panic!("{size} bytes begin with {other:?}"),
            };
            tokio::time::sleep(Duration::from_secs(4)).await;
            let rest = Ran::of(output).await;
            (size, first.len() + rest.out.len(), rest.exit, rest.error)
        }
    });
    for (size, came, exit, error) in join_all(all).await {
        assert_eq!((came, exit), (size, Some(0)), "{error:?}");
    }
}

#[test]
fn children_that_hold_the_output_are_not_waited_for() {
    on_docker("traps::children_that_hold_the_output_are_not_waited_for", |real| {
        Box::pin(children(real))
    });
}

async fn children(real: &Real) {
    let bench = real.bench();
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let ran = bench.run_in(&spec.name, &["sh", "-c", "sleep 30 & echo done; exit 5"]);
    let ran = tokio::time::timeout(Duration::from_secs(10), ran).await.expect("no waiting");
    assert_eq!((ran.text().as_str(), ran.exit), ("done\n", Some(5)));
}

#[test]
fn a_program_that_the_daemon_cannot_start_fails() {
    on_docker("traps::a_program_that_the_daemon_cannot_start_fails", |real| {
        Box::pin(not_started(real))
    });
}

/// The daemon answers 200 and writes its error to the standard output, or refuses the program.
async fn not_started(real: &Real) {
    let bench = real.bench();
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let mut nobody = exec(&["true"]);
    nobody.user = Some("nobody-of-that-name".to_owned());
    // The shell that every program needs is not found.
    let mut nowhere = exec(&["true"]);
    nowhere.env.insert("PATH".to_owned(), "/nowhere".to_owned());
    for program in [nobody, nowhere] {
        match bench.engine().exec(&spec.name, program, None).await {
            Ok(output) => {
                let ran = Ran::of(output).await;
                assert!(matches!(ran.exit, Some(126 | 127)), "{ran:?}");
            }
            Err(EngineError::Refused(why)) => assert!(why.contains("nobody-of-that-name"), "{why}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_long_line_is_one_line() {
    on_docker("traps::a_long_line_is_one_line", |real| Box::pin(long_line(real)));
}

/// The daemon stores lines in pieces of 16 KiB.
async fn long_line(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    let script = "trap 'exit 0' TERM; head -c 50000 /dev/zero | tr '\\000' x; echo; \
                  printf 'caf\\303\\251 \\377\\n' >&2; sleep infinity & wait";
    spec.command = Some(command(&["sh", "-c", script]));
    bench.start(&spec).await;
    let query = LogQuery { tail: 100, since: None, stream: None };
    let mut log = Vec::new();
    while log.len() < 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        log = bench.engine().logs(&spec.name, query).await.unwrap();
    }
    assert_eq!(log.len(), 2);
    let text = |stream| log.iter().find(|line| line.stream == stream).unwrap().text.as_str();
    assert_eq!(text(Stream::Out), "x".repeat(50_000));
    assert_eq!(text(Stream::Err), "café \u{fffd}");
}

#[test]
fn two_networks_of_one_name_become_one() {
    on_docker("traps::two_networks_of_one_name_become_one", |real| Box::pin(two_networks(real)));
}

async fn two_networks(real: &Real) {
    let bench = real.bench();
    let name = bench.name("net");
    for _ in 0..2 {
        let request = NetworkCreateRequest {
            name: name.clone(),
            labels: Some(HashMap::from_iter(bench.labels())),
            ..NetworkCreateRequest::default()
        };
        // Newer daemons refuse the second one.
        let _ = real.behind().create_network(request).await;
    }
    bench.engine().ensure_network(&name, &bench.labels()).await.unwrap();
    assert_eq!(bench.engine().inventory(&bench.labels()).await.unwrap().networks.len(), 1);
    bench.start(&bench.spec("a")).await;
}

fn build(bench: &dyn Bench) -> BuildSpec {
    BuildSpec {
        tag: format!("svc-test/{}-trap:1", bench.run()),
        dockerfile: "Dockerfile".to_owned(),
        args: Default::default(),
        labels: bench.labels(),
        memory: 1 << 30,
        isolation: None,
    }
}

#[test]
fn a_context_that_is_wrong_is_refused() {
    on_docker("traps::a_context_that_is_wrong_is_refused", |real| Box::pin(wrong_context(real)));
}

/// The daemon reports most of these as its own faults.
async fn wrong_context(real: &Real) {
    let bench = real.bench();
    let refused = |end: Result<String, EngineError>| {
        assert!(matches!(end, Err(EngineError::Refused(_))), "{end:?}");
    };
    let mut elsewhere = build(bench);
    elsewhere.dockerfile = "elsewhere/Dockerfile".to_owned();
    refused(built(bench, elsewhere, "FROM scratch\n").await.1);
    refused(built(bench, build(bench), "NONSENSE\n").await.1);
    refused(built(bench, build(bench), "").await.1);
    refused(built(bench, build(bench), "FROM svc-test/none:1\n").await.1);
    let whole = archive("Dockerfile", &format!("FROM scratch\n{}", "# more\n".repeat(500)));
    for wrong in [b"no archive".to_vec(), whole[..1500].to_vec()] {
        let context = stream::iter([Ok::<_, io::Error>(Bytes::from(wrong))]).boxed();
        let events = bench.engine().build(build(bench), context).await.unwrap();
        let last = events.collect::<Vec<_>>().await.pop().unwrap();
        assert!(matches!(last, Err(EngineError::Refused(_))), "{last:?}");
    }
    let broken = stream::iter([Err(io::Error::other("the disk is gone"))]).boxed();
    let events = bench.engine().build(build(bench), broken).await.unwrap();
    let last = events.collect::<Vec<_>>().await.pop().unwrap();
    assert!(last.is_err(), "{last:?}");
    assert_eq!(bench.engine().images(&bench.labels()).await.unwrap(), []);
}

#[test]
fn a_build_may_use_more_than_two_gibibytes() {
    on_docker("traps::a_build_may_use_more_than_two_gibibytes", |real| Box::pin(large_build(real)));
}

/// The client's own parameter has 31 bits.
async fn large_build(real: &Real) {
    let bench = real.bench();
    let (from, run) = (bench.image_name(), bench.run());
    let limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max";
    // One of the two files is missing, and the engine mixes the complaint into the other's line.
    let dockerfile = format!("FROM {from}\nRUN : {run}; {limit} 2>/dev/null; true\n");
    let spec = BuildSpec { memory: 3 << 30, ..build(bench) };
    let (lines, end) = built(bench, spec, &dockerfile).await;
    assert!(lines.iter().any(|line| line == "3221225472"), "{lines:?}");
    end.unwrap();
}

#[test]
fn a_build_that_nobody_waits_for_ends() {
    on_docker("traps::a_build_that_nobody_waits_for_ends", |real| Box::pin(dropped_build(real)));
}

async fn dropped_build(real: &Real) {
    let bench = real.bench();
    let word = format!("100000{}", u16::from_str_radix(&bench.run()[..4], 16).unwrap());
    let dockerfile = format!("FROM {}\nRUN echo begun && sleep {word}\n", bench.image_name());
    let context = stream::iter([Ok(Bytes::from(archive("Dockerfile", &dockerfile)))]).boxed();
    let mut events = bench.engine().build(build(bench), context).await.unwrap();
    while events.next().await.unwrap().unwrap() != BuildEvent::Line("begun".to_owned()) {}
    assert_eq!(building(real, &word).await, 1);
    drop(events);
    for _ in 0..100 {
        if building(real, &word).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("it goes on");
}

/// How many containers have this word in their command.
async fn building(real: &Real, word: &str) -> usize {
    let also_not_yet_running = ListContainersOptionsBuilder::default().all(true).build();
    let all = real.behind().list_containers(Some(also_not_yet_running)).await.unwrap();
    let commands = all.iter().filter_map(|container| container.command.as_deref());
    commands.filter(|command| command.contains(word)).count()
}

#[test]
fn a_registry_that_is_down_is_not_a_missing_image() {
    on_docker("traps::a_registry_that_is_down_is_not_a_missing_image", |real| {
        Box::pin(registry_down(real))
    });
}

async fn registry_down(real: &Real) {
    // Nobody listens on port 1.
    let reference = "127.0.0.1:1/x:1";
    let engine = real.bench().engine();
    let error = engine.resolve(reference, None).await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable(_)), "{error:?}");
    let error = engine.ensure_image(reference, None).await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable(_)), "{error:?}");
}
