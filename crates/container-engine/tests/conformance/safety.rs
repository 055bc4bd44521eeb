//! What a container of the real engine may do, seen from inside.

use super::{
    bench::{Bench, command},
    programs::SERVER,
    real::{Real, on_docker},
};
use container_engine::{Capability, ContainerSpec, HealthCommand, LogQuery, Mount};
use std::{
    fs::DirEntry,
    net::UdpSocket,
    path::PathBuf,
    time::{Duration, Instant},
};

async fn says(bench: &dyn Bench, spec: &ContainerSpec, script: &str) -> String {
    let ran = bench.run_in(&spec.name, &["sh", "-c", script]).await;
    format!("{}{}", ran.text(), String::from_utf8_lossy(&ran.err)).trim().to_owned()
}

/// A value of `/proc/self/status`.
async fn status(bench: &dyn Bench, spec: &ContainerSpec, field: &str) -> String {
    let script = format!("sed -n 's/^{field}:[[:space:]]*//p' /proc/self/status");
    says(bench, spec, &script).await
}

#[test]
fn a_container_may_do_nothing_beyond_its_spec() {
    on_docker("safety::a_container_may_do_nothing_beyond_its_spec", |real| Box::pin(nothing(real)));
}

async fn nothing(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    spec.limits.cpu_millis = 250;
    bench.start(&spec).await;
    for set in ["CapEff", "CapPrm", "CapBnd", "CapInh"] {
        assert_eq!(status(bench, &spec, set).await, "0000000000000000", "{set}");
    }
    assert_eq!(status(bench, &spec, "NoNewPrivs").await, "1");
    let refused = says(bench, &spec, "echo x > /etc/x; echo x > /x").await;
    assert_eq!(refused.matches("Read-only file system").count(), 2, "{refused}");
    assert_eq!(says(bench, &spec, "echo x > /tmp/x && cat /tmp/x").await, "x");
    let refused = says(bench, &spec, "cp /bin/true /tmp/true && /tmp/true").await;
    assert!(refused.contains("ermission denied"), "{refused}");
    let tmp = says(bench, &spec, "grep ' /tmp ' /proc/mounts").await;
    assert!(["noexec", "nosuid", "size=65536k"].iter().all(|flag| tmp.contains(flag)), "{tmp}");

    // The paths of cgroups version 1 and version 2.
    let memory = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max";
    assert!(says(bench, &spec, memory).await.contains("67108864"));
    let swap = "cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes \
                /sys/fs/cgroup/memory.swap.max";
    let swap = says(bench, &spec, swap).await;
    let is_off = swap.contains("67108864") || swap.lines().any(|line| line == "0");
    // A kernel may not count swap at all.
    assert!(is_off || swap.matches("No such file").count() == 2, "{swap}");
    let pids = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max";
    assert!(says(bench, &spec, pids).await.lines().any(|line| line == "64"));
    let cpu = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max";
    assert!(says(bench, &spec, cpu).await.contains("25000"));

    // Where the processors are busy, the service comes before every container.
    let weight = "cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu.weight 2>/dev/null";
    let weight: i64 = says(bench, &spec, weight).await.parse().unwrap();
    assert!((1..=8).contains(&weight), "{weight}");

    // An init process adopts orphans.
    let first = says(bench, &spec, "tr '\\000' ' ' < /proc/1/cmdline").await;
    assert!(first.contains("init"), "{first}");
    let shown = real.behind().inspect_container(&spec.name, None).await.unwrap();
    let host = shown.host_config.unwrap();
    assert_eq!(host.privileged, Some(false));
    assert_eq!(host.ipc_mode.as_deref(), Some("private"));
    assert_eq!(host.oom_score_adj, Some(200));
    let log = host.log_config.unwrap();
    let config = log.config.unwrap();
    assert_eq!(log.typ.as_deref(), Some("json-file"));
    assert_eq!((config["max-size"].as_str(), config["max-file"].as_str()), ("10m", "3"));
    let policy = host.restart_policy.unwrap().name.unwrap();
    assert_eq!(policy.to_string(), "no");
}

#[test]
fn a_container_that_logs_without_end_keeps_thirty_megabytes() {
    let name = "safety::a_container_that_logs_without_end_keeps_thirty_megabytes";
    on_docker(name, |real| Box::pin(logs_without_end(real)));
}

async fn logs_without_end(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    // 50 MB, and then 16 MB in a line that does not end.
    let program = "yes \"$(head -c 999 /dev/zero | tr '\\0' x)\" | head -n 50000; \
                   head -c 16M /dev/zero | tr '\\0' x; echo; echo done; sleep 600";
    spec.command = Some(["sh", "-c", program].map(str::to_owned).into());
    bench.start(&spec).await;
    let last = LogQuery { tail: 1, since: None, stream: None };
    let begun = Instant::now();
    let is_done = async || {
        let lines = bench.engine().logs(&spec.name, last).await.unwrap();
        lines.last().is_some_and(|line| line.text == "done")
    };
    while !is_done().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to its end");
        bench.pass(Duration::from_millis(200)).await;
    }
    let shown = real.behind().inspect_container(&spec.name, None).await.unwrap();
    let log = PathBuf::from(shown.log_path.unwrap());
    let files = std::fs::read_dir(log.parent().unwrap()).unwrap().map(|file| file.unwrap());
    let of_log = |file: &DirEntry| file.file_name().to_string_lossy().contains("-json.log");
    let bytes: u64 = files.filter(of_log).map(|file| file.metadata().unwrap().len()).sum();
    assert!((20_000_000..=31_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_container_may_do_what_its_spec_says() {
    on_docker("safety::a_container_may_do_what_its_spec_says", |real| Box::pin(what_is_said(real)));
}

async fn what_is_said(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    spec.read_only = false;
    spec.user = Some("1234:1234".to_owned());
    spec.capabilities = vec![Capability::Chown, Capability::SetUid];
    spec.env.insert("GREETING".to_owned(), "a=b c".to_owned());
    bench.start(&spec).await;
    assert_eq!(says(bench, &spec, "id -u; id -g").await, "1234\n1234");
    assert_eq!(says(bench, &spec, "printf %s \"$GREETING\"").await, "a=b c");
    // CAP_CHOWN is bit 0 and CAP_SETUID bit 7. Without root they are bounds, not effective.
    assert_eq!(status(bench, &spec, "CapBnd").await, "0000000000000081");
    assert_eq!(status(bench, &spec, "CapEff").await, "0000000000000000");
    let script = "echo x > /tmp/x && cat /tmp/x";
    assert_eq!(says(bench, &spec, script).await, "x");

    let mut root = bench.spec("b");
    root.capabilities = vec![Capability::Fowner, Capability::DacOverride, Capability::SetGid];
    root.read_only = false;
    bench.start(&root).await;
    assert_eq!(status(bench, &root, "CapEff").await, "000000000000004a");
    assert_eq!(says(bench, &root, "echo x > /x && cat /x").await, "x");
    // The alias is a host name on the network.
    let found = says(bench, &spec, "getent hosts b").await;
    assert!(found.ends_with(" b"), "{found}");
}

#[test]
fn a_port_is_reached_from_this_machine_only() {
    on_docker("safety::a_port_is_reached_from_this_machine_only", |real| Box::pin(only_here(real)));
}

async fn only_here(real: &Real) {
    let bench = real.bench();
    let mut spec = bench.spec("a");
    spec.command = Some(command(SERVER));
    spec.port = Some(8080);
    let port = bench.start(&spec).await.port.unwrap();
    assert_eq!(bench.answers(port).await, Some(true));
    // The address at which others reach this machine, if it has one.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("192.0.2.1:9").is_ok() {
        let outside = (socket.local_addr().unwrap().ip(), port);
        let reached = tokio::net::TcpStream::connect(outside);
        let reached = tokio::time::timeout(Duration::from_secs(2), reached).await;
        assert!(!matches!(reached, Ok(Ok(_))), "{outside:?} answers");
    }
    let shown = real.behind().inspect_container(&spec.name, None).await.unwrap();
    let ports = shown.network_settings.unwrap().ports.unwrap();
    let bindings = ports["8080/tcp"].as_ref().unwrap();
    assert_eq!(bindings.len(), 1, "{bindings:?}");
    assert_eq!(bindings[0].host_ip.as_deref(), Some("127.0.0.1"));
}

#[test]
fn data_outlives_the_container_and_nothing_else_does() {
    on_docker("safety::data_outlives_the_container_and_nothing_else_does", |real| {
        Box::pin(data_outlives(real))
    });
}

async fn data_outlives(real: &Real) {
    let (bench, engine) = (real.bench(), real.bench().engine());
    // An image with an anonymous volume and a health check.
    let dockerfile = format!(
        "FROM {}\nVOLUME /nameless\nHEALTHCHECK --interval=1s CMD false\n",
        bench.image_name()
    );
    let spec = container_engine::BuildSpec {
        tag: format!("svc-test/{}-volume:1", bench.run()),
        dockerfile: "Dockerfile".to_owned(),
        args: Default::default(),
        labels: bench.labels(),
        memory: 1 << 30,
        isolation: None,
    };
    let image = super::images::built(bench, spec, &dockerfile).await.1.unwrap();
    let mut spec = bench.spec("a");
    let volume = bench.name("vol");
    spec.image = image;
    spec.mounts = vec![Mount { volume: volume.clone(), path: "/data".to_owned() }];
    engine.ensure_volume(&volume, &bench.labels()).await.unwrap();
    assert_eq!(bench.start(&spec).await.health, None);
    assert_eq!(says(bench, &spec, "echo kept > /data/x; echo lost > /nameless/x").await, "");
    assert_eq!(says(bench, &spec, "head -c 8388608 /dev/zero > /nameless/y").await, "");
    let held = engine.disk_use(&bench.labels()).await.unwrap();
    assert!(held.containers[&spec.name] >= Some(8 << 20), "what has no name counts: {held:?}");
    let shown = real.behind().inspect_container(&spec.name, None).await.unwrap();
    let mounts = shown.mounts.unwrap();
    let nameless =
        mounts.into_iter().find(|mount| mount.destination.as_deref() == Some("/nameless"));
    let nameless = nameless.unwrap().name.unwrap();
    engine.remove_container(&spec.name).await.unwrap();
    assert!(real.behind().inspect_volume(&nameless).await.is_err(), "it is still there");
    // The image's health check is off; a health command of the spec runs.
    spec.health = Some(HealthCommand {
        command: command(&["test", "-e", "/data/x"]),
        interval: Duration::from_millis(500),
        timeout: Duration::from_secs(5),
        retries: 1,
        start_period: Duration::ZERO,
    });
    bench.start(&spec).await;
    assert_eq!(says(bench, &spec, "cat /data/x; ls /nameless").await, "kept");
    bench.see_until(&spec.name, |c| c.health == Some(container_engine::Health::Healthy)).await;
}
