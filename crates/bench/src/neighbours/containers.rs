//! Containers of instances that take of the machine what they can get, and very many instances at once.

use super::{Tenants, start};
use crate::{
    Pace,
    backend::{MeasuredService, docker, has_docker},
    image_builds::base_image,
    machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use container_engine::{ContainerSpec, Engine, Labels, Limits, Mount, docker::Docker};
use std::{collections::BTreeMap, time::Duration};
use tokio::runtime::{Builder, Runtime};

/// What the attacker's containers do, each as the command of a shell. `/disk` is a volume.
const PROGRAMS: [(&str, &str); 5] = [
    ("programs that compute without end", "for n in 1 2 3 4; do while :; do :; done & done; wait"),
    // Not a shell, which ends when it cannot fork.
    (
        "fork bombs",
        "exec node -e \"const {spawn} = require('child_process'); \
         setInterval(() => { for (let n = 0; n < 20; n++) \
         spawn('sleep', ['1']).on('error', () => {}); }, 5)\"",
    ),
    ("programs that fill their memory", "while :; do tail /dev/zero; done"),
    ("programs that log without end", "yes \"$(head -c 8000 /dev/zero | tr '\\0' x)\""),
    (
        "programs that write without end",
        "while :; do head -c 100M /dev/zero > /disk/$HOSTNAME; done",
    ),
];
/// Containers of each attack. All together may use four times what two processors have.
const CONTAINERS: usize = 8;
const MEMORY: u64 = 256 << 20;
const PIDS: u32 = 512;
/// The network, the volume, and the beginning of the names of the containers.
const NAME: &str = "svc-bench-attack";
const LABEL: &str = "svc.bench";
/// Instances that are created at once.
const INSTANCES: usize = 40;

/// Measures the attacks with containers. Without Docker there are no rows.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    if !has_docker() {
        return Ok(Vec::new());
    }
    if let Err(e) = machine::weigh_as_the_service() {
        eprintln!("containers weigh as much as the service and the visitor: {e}");
    }
    Ok([programs(pace)?, instances(pace)?].concat())
}

fn programs(pace: Pace) -> Outcome<Vec<Row>> {
    let runtime = Builder::new_current_thread().enable_all().build().or_say("a runtime")?;
    let engine = Docker::connect(None).or_say("Docker")?;
    let home = machine::scratch()?;
    let server = start(home.path(), pace, &[])?;
    let Tenants { visitor, .. } = Tenants::register(&server)?;
    let rows = PROGRAMS.iter().map(|(what, program)| {
        machine::wait_until_quiet();
        let beside = visitor.beside(&server, pace, |signal| {
            let containers = Containers::start(&runtime, &engine, program)?;
            signal.begin();
            signal.wait();
            containers.check()
        })?;
        Ok(beside.rows_at_worst(&format!("{CONTAINERS} {what}")))
    });
    Ok(rows.collect::<Outcome<Vec<_>>>()?.concat())
}

/// Creates instances, as fast as the service does it, beside the visitor.
fn instances(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let workers = pace.workers.unwrap_or_else(machine::processors);
    let server = Server::start_with(home.path(), workers, &[("SVC_CPU_OVERCOMMIT", "100")])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let service = MeasuredService { client: &server.client, session: attacker };
    let project = service.project()?;
    // The first one pulls the images.
    service.start(&project)?;
    let beside = visitor.beside(&server, pace, |signal| {
        signal.begin();
        // A small machine promises less.
        let made: Vec<_> = (0..INSTANCES).map_while(|_| service.create(&project).ok()).collect();
        signal.wait();
        made.iter().try_for_each(|instance| service.delete(instance))?;
        made.iter().try_for_each(|instance| service.until_gone(instance))
    })?;
    server.stop()?;
    Ok(beside.rows_at_worst(&format!("{INSTANCES} instances that are created at once")).into())
}

/// Containers that run until the value is dropped.
struct Containers;

impl Containers {
    /// Starts containers as the service starts those of instances.
    fn start(runtime: &Runtime, engine: &Docker, program: &str) -> Outcome<Containers> {
        let started = Containers;
        let image = docker(&["image", "inspect", "--format={{.Id}}", &base_image()])?;
        let labels = Labels::from([(LABEL.to_owned(), "attack".to_owned())]);
        runtime.block_on(async {
            engine.ensure_network(NAME, &labels).await.or_say("the network")?;
            engine.ensure_volume(NAME, &labels).await.or_say("the volume")?;
            for number in 0..CONTAINERS {
                let spec = spec(number, &image, program, &labels);
                engine.ensure_container(&spec).await.or_say("a container")?;
                engine.start(&spec.name).await.or_say("a container")?;
            }
            Ok(started)
        })
    }

    /// Checks that all of them still run.
    fn check(&self) -> Outcome<()> {
        let filter = format!("name=^{NAME}-");
        let running = docker(&["ps", "--quiet", "--filter", &filter])?.lines().count();
        match running {
            CONTAINERS => Ok(()),
            few => Err(format!("only {few} containers of the attack still run")),
        }
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        // What is not there need not be removed.
        for number in 0..CONTAINERS {
            let _ = docker(&["rm", "--force", &format!("{NAME}-{number}")]);
        }
        let _ = docker(&["network", "rm", NAME]);
        let _ = docker(&["volume", "rm", NAME]);
    }
}

fn spec(number: usize, image: &str, program: &str, labels: &Labels) -> ContainerSpec {
    ContainerSpec {
        name: format!("{NAME}-{number}"),
        image: image.to_owned(),
        command: Some(["sh", "-c", program].map(str::to_owned).into()),
        env: BTreeMap::new(),
        network: NAME.to_owned(),
        alias: format!("attack-{number}"),
        port: None,
        mounts: vec![Mount { volume: NAME.to_owned(), path: "/disk".to_owned() }],
        scratch: vec!["/tmp".to_owned()],
        read_only: true,
        user: Some("0".to_owned()),
        capabilities: Vec::new(),
        limits: Limits { memory: MEMORY, cpu_millis: 1000, pids: PIDS },
        health: None,
        grace: Duration::ZERO,
        labels: labels.clone(),
    }
}
