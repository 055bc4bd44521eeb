//! What a test works with: an engine, and ways to change its objects without the port.

use async_trait::async_trait;
use bytes::Bytes;
use container_engine::{
    Container, ContainerSpec, Engine, EngineError, Exec, Labels, Limits, Output, RegistryLogin,
};
use futures_util::{StreamExt, stream::BoxStream};
use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// An engine under test.
#[async_trait]
pub trait Bench: Send + Sync {
    fn engine(&self) -> &dyn Engine;
    /// Unique to the test: a part of all names, and a label of all objects.
    fn run(&self) -> &str;
    /// A reference that always names the image of all containers here.
    fn image(&self) -> &str;
    /// A name of that image for a Dockerfile's `FROM`.
    fn image_name(&self) -> &str;
    /// Kills a container without the engine's port.
    async fn kill(&self, container: &str);
    /// Removes a container without the engine's port.
    async fn vanish(&self, container: &str);
    /// Removes a network without the engine's port.
    async fn vanish_network(&self, network: &str);
    /// Creates a running container that is not ours.
    async fn add_foreign_container(&self, name: &str);
    /// Creates a volume that is not ours.
    async fn add_foreign_volume(&self, name: &str);
    /// Has a running container write so many bytes into a new file.
    async fn write(&self, container: &str, path: &str, bytes: u64);
    async fn pass(&self, time: Duration);
    /// Whether a program with this word among its arguments runs in the container.
    async fn has_program(&self, container: &str, word: &str) -> bool;
    /// Whether a server answers at the port. `None`: this cannot be tried.
    async fn answers(&self, port: u16) -> Option<bool>;
    /// The host of a registry, if there is one. With a login, the registry requires it.
    async fn registry(&self, login: Option<&RegistryLogin>) -> Option<String>;
}

impl dyn Bench + '_ {
    pub fn labels(&self) -> Labels {
        Labels::from([("svc.test".to_owned(), self.run().to_owned())])
    }

    pub fn name(&self, what: &str) -> String {
        format!("svc-test-{}-{what}", self.run())
    }

    /// A container that runs until it is stopped.
    pub fn spec(&self, what: &str) -> ContainerSpec {
        ContainerSpec {
            name: self.name(what),
            image: self.image().to_owned(),
            command: None,
            env: BTreeMap::new(),
            network: self.name("net"),
            alias: what.to_owned(),
            port: None,
            mounts: Vec::new(),
            scratch: vec!["/tmp".to_owned()],
            read_only: true,
            user: None,
            capabilities: Vec::new(),
            limits: Limits { memory: 64 << 20, cpu_millis: 1000, pids: 64 },
            health: None,
            grace: Duration::from_secs(5),
            labels: self.labels(),
        }
    }

    /// Creates a container and its network.
    pub async fn make(&self, spec: &ContainerSpec) -> Container {
        self.engine().ensure_network(&spec.network, &self.labels()).await.unwrap();
        self.engine().ensure_container(spec).await.unwrap()
    }

    /// Creates a container and starts it.
    pub async fn start(&self, spec: &ContainerSpec) -> Container {
        self.make(spec).await;
        self.engine().start(&spec.name).await.unwrap();
        self.see(&spec.name).await
    }

    pub async fn see(&self, name: &str) -> Container {
        self.engine().container(name).await.unwrap().unwrap()
    }

    /// Waits until the container satisfies the condition.
    pub async fn see_until(&self, name: &str, is_so: impl Fn(&Container) -> bool) -> Container {
        for _ in 0..150 {
            let container = self.see(name).await;
            if is_so(&container) {
                return container;
            }
            self.pass(Duration::from_millis(200)).await;
        }
        panic!("it never came: {:?}", self.see(name).await);
    }

    /// Waits until no program with this word runs in the container.
    pub async fn see_program_end(&self, container: &str, word: &str) {
        for _ in 0..75 {
            if !self.has_program(container, word).await {
                return;
            }
            self.pass(Duration::from_millis(200)).await;
        }
        panic!("it goes on");
    }

    pub async fn run_in(&self, container: &str, command: &[&str]) -> Ran {
        Ran::of(self.engine().exec(container, exec(command), None).await.unwrap()).await
    }
}

pub fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A program with a limit of a minute.
pub fn exec(words: &[&str]) -> Exec {
    Exec {
        command: command(words),
        env: BTreeMap::new(),
        user: None,
        within: Duration::from_secs(60),
    }
}

/// The output and the end of a program.
#[derive(Debug, Default)]
pub struct Ran {
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    pub exit: Option<i64>,
    pub error: Option<EngineError>,
}

impl Ran {
    pub async fn of(mut output: BoxStream<'static, Result<Output, EngineError>>) -> Ran {
        let mut ran = Ran::default();
        while let Some(item) = output.next().await {
            assert!(ran.exit.is_none() && ran.error.is_none(), "something came after the end");
            match item {
                Ok(Output::Out(bytes)) => ran.out.extend_from_slice(&bytes),
                Ok(Output::Err(bytes)) => ran.err.extend_from_slice(&bytes),
                Ok(Output::Exit(code)) => ran.exit = Some(code),
                Err(error) => ran.error = Some(error),
            }
        }
        ran
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

pub fn pieces(bytes: Vec<u8>, size: usize) -> BoxStream<'static, Bytes> {
    let bytes = Bytes::from(bytes);
    let starts = (0..bytes.len()).step_by(size);
    let pieces: Vec<_> =
        starts.map(|start| bytes.slice(start..bytes.len().min(start + size))).collect();
    futures_util::stream::iter(pieces).boxed()
}
