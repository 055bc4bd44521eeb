//! The real engine as a bench.

use super::{
    bench::{Bench, Work},
    registry::Registry,
};
use async_trait::async_trait;
use bollard::{
    models::{ContainerCreateBody, VolumeCreateRequest},
    query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder},
};
use container_engine::{Engine, Labels, RegistryLogin, docker::Docker};
use data_encoding::HEXLOWER;
use std::{
    collections::HashMap,
    env,
    io::Write as _,
    process::{Command, Stdio},
    sync::{Mutex, OnceLock},
    time::Duration,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The label of objects that are not ours, by which the clean-up finds them.
const FOREIGN: &str = "test.foreign";

/// The real engine, and the objects that one test creates in it.
pub struct Real {
    docker: Docker,
    /// Reaches the daemon without the port.
    behind: bollard::Docker,
    run: String,
    toolbox: Toolbox,
    registries: Mutex<Vec<Registry>>,
    builder_base: String,
}

#[derive(Clone)]
struct Toolbox {
    name: String,
    id: String,
}

/// Runs a test on the real engine. Without one, prints that the test is left out.
pub fn run(name: &str, test: impl for<'a> FnOnce(&'a dyn Bench) -> Work<'a>) {
    on_docker(name, |real| test(real));
}

/// Runs a test of the real engine alone.
pub fn on_docker(name: &str, test: impl for<'a> FnOnce(&'a Real) -> Work<'a>) {
    static TOOLBOX: OnceLock<Result<(Toolbox, String), String>> = OnceLock::new();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let docker = Docker::connect(None).unwrap();
    let behind = match bollard::Docker::connect_with_defaults() {
        Ok(behind) if runtime.block_on(docker.about()).is_ok() => behind,
        _ => return left_out(name, "no container engine answers"),
    };
    let made = || Ok((runtime.block_on(toolbox(&docker))?, test_image("builder-base")?));
    let (toolbox, builder_base) = match TOOLBOX.get_or_init(made) {
        Ok(made) => made.clone(),
        Err(why) => return left_out(name, why),
    };
    let docker = docker.with_builder_base(&builder_base);
    let real =
        Real { docker, builder_base, behind, run: unique(), toolbox, registries: Mutex::default() };
    runtime.block_on(test(&real));
}

fn left_out(name: &str, why: &str) {
    // Not with `eprintln!`: the output of tests that pass is not shown.
    let _ = writeln!(std::io::stderr(), "left out: {name} because {why}");
}

fn unique() -> String {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).unwrap();
    HEXLOWER.encode(&bytes)
}

/// The image that the environment names, or one that is built here.
async fn toolbox(docker: &Docker) -> Result<Toolbox, String> {
    let name = match env::var("SVC_TEST_TOOLBOX") {
        Ok(name) => name,
        Err(_) => test_image("toolbox")?,
    };
    let image = docker.ensure_image(&name, None).await;
    let id = image.map_err(|e| format!("there is no toolbox: {e}"))?.id;
    Ok(Toolbox { name, id })
}

fn test_image(image: &str) -> Result<String, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/support/images/build.sh");
    let built = Command::new(script)
        .arg(image)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{script} does not run: {e}"))?;
    let said = String::from_utf8_lossy(&built.stdout).into_owned();
    let name = said.lines().find_map(|line| line.strip_prefix(image)?.strip_prefix(' '));
    name.map(|name| name.trim().to_owned())
        .ok_or_else(|| format!("{script} does not make the image {image}"))
}

impl Real {
    /// The image from which that of helpers is made.
    pub fn builder_base(&self) -> &str {
        &self.builder_base
    }

    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    pub fn bench(&self) -> &dyn Bench {
        self
    }

    pub fn behind(&self) -> &bollard::Docker {
        &self.behind
    }

    /// Labels by which the clean-up finds objects that look like somebody else's.
    fn foreign(&self) -> HashMap<String, String> {
        HashMap::from([(FOREIGN.to_owned(), self.run.clone())])
    }
}

impl Drop for Real {
    /// Cleans up also after a failed test, whose runtime is gone.
    fn drop(&mut self) {
        let ours = self.bench().labels();
        let foreign = Labels::from([(FOREIGN.to_owned(), self.run.clone())]);
        let clean = move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(clean(&foreign));
            runtime.block_on(clean(&ours));
        };
        if std::thread::spawn(clean).join().is_err() {
            let _ = writeln!(std::io::stderr(), "objects of the test {} are left", self.run);
        }
    }
}

async fn clean(labels: &Labels) {
    let docker = Docker::connect(None).unwrap();
    let there = docker.inventory(labels).await.unwrap();
    for container in &there.containers {
        docker.remove_container(&container.name).await.unwrap();
    }
    for network in &there.networks {
        docker.remove_network(&network.name).await.unwrap();
    }
    for volume in &there.volumes {
        docker.remove_volume(&volume.name).await.unwrap();
    }
    for image in docker.images(labels).await.unwrap() {
        for name in image.tags.iter().chain(&image.digests).chain([&image.id]) {
            docker.remove_image(name).await.unwrap();
        }
    }
}

#[async_trait]
impl Bench for Real {
    fn engine(&self) -> &dyn Engine {
        &self.docker
    }

    fn run(&self) -> &str {
        &self.run
    }

    fn image(&self) -> &str {
        &self.toolbox.id
    }

    fn image_name(&self) -> &str {
        &self.toolbox.name
    }

    async fn kill(&self, container: &str) {
        self.behind.kill_container(container, None).await.unwrap();
    }

    async fn vanish(&self, container: &str) {
        let options = RemoveContainerOptionsBuilder::default().force(true).build();
        self.behind.remove_container(container, Some(options)).await.unwrap();
    }

    async fn vanish_network(&self, network: &str) {
        self.behind.remove_network(network).await.unwrap();
    }

    async fn add_foreign_container(&self, name: &str) {
        let body = ContainerCreateBody {
            image: Some(self.toolbox.id.clone()),
            labels: Some(self.foreign()),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        self.behind.create_container(Some(options), body).await.unwrap();
        self.behind.start_container(name, None).await.unwrap();
    }

    async fn add_foreign_volume(&self, name: &str) {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(self.foreign()),
            ..VolumeCreateRequest::default()
        };
        self.behind.create_volume(request).await.unwrap();
    }

    async fn write(&self, container: &str, path: &str, bytes: u64) {
        let script = format!("head -c {bytes} /dev/urandom >{path}");
        let ran = self.bench().run_in(container, &["sh", "-c", &script]).await;
        assert_eq!(ran.exit, Some(0), "{ran:?}");
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn has_program(&self, container: &str, word: &str) -> bool {
        let found = self.behind.top_processes(container, None).await.unwrap();
        let rows = found.processes.unwrap_or_default();
        rows.iter().flatten().any(|column| column.split(' ').any(|part| part == word))
    }

    async fn answers(&self, port: u16) -> Option<bool> {
        for _ in 0..50 {
            if let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await {
                let mut answer = String::new();
                let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
                let _ = stream.read_to_string(&mut answer).await;
                if answer.ends_with("well") {
                    return Some(true);
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(false)
    }

    async fn registry(&self, login: Option<&RegistryLogin>) -> Option<String> {
        let registry = Registry::start(login)?;
        let host = registry.host.clone();
        self.registries.lock().unwrap().push(registry);
        Some(host)
    }
}
