//! Docker Engine, through its API.

mod body;
mod build;
mod containers;
mod context;
mod daemon;
mod disk_use;
mod errors;
mod events;
mod exec;
mod fingerprint;
mod helpers;
mod image_archives;
mod images;
mod isolated;
mod lines;
mod logs;
mod objects;
mod pipes;
mod produce;
mod reference;
mod ssh;
mod tls;
mod transport;
mod usage;
mod view;
mod volumes;
mod walls;

use crate::{
    About, Archive, BuildEvent, BuildSpec, Container, ContainerSpec, Credentials, DiskUse, Engine,
    EngineError, Event, Exec, Image, Inventory, Labels, LogLine, LogQuery, Output, Peers,
    RegistryLogin, Usage,
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{Timestamp, text::EngineAddress};
use daemon::{Daemon, LOOK};
use futures_core::stream::BoxStream;
use helpers::{Helpers, in_use::InUse};
use std::{io, net::IpAddr, path::Path, sync::Arc, time::Duration};
use walls::Walls;

/// A Docker daemon. Requires a tokio runtime.
pub struct Docker {
    daemon: Daemon,
    /// Held while a network is created.
    networks: tokio::sync::Mutex<()>,
    /// Held while folders of volumes are read.
    measuring: tokio::sync::Mutex<()>,
    helpers: Helpers,
    /// The disks of isolated builds in use, by their volumes.
    disks: InUse,
    /// What keeps containers from what they may not reach. `None`: somebody else does.
    walls: Option<Walls>,
}

pub use context::context;
pub use daemon::Recognizes;

/// The default of [`Docker::with_builder_base`].
pub const BUILDER_BASE: &str = "debian:forky-slim";

impl Docker {
    /// The daemon at this address (`unix:///path` or `tcp://host:port`, without TLS), at the
    /// address in the environment variable `DOCKER_HOST`, or on this machine. The daemon need not
    /// run yet: the connection is made on first use, and again after the daemon was unreachable.
    ///
    /// An invalid address is [`EngineError::Refused`].
    pub fn connect(address: Option<&str>) -> Result<Docker, EngineError> {
        Daemon::at(address).map(Docker::over)
    }

    /// The daemon of another machine, whose containers are reached at `publishes_at`, an address of that machine.
    /// Files that ssh reads are in `folder` for a moment. Like [`Docker::connect`], but that credentials of which
    /// nothing can be made are [`EngineError::Refused`].
    pub fn connect_elsewhere(
        address: &EngineAddress,
        credentials: &Credentials,
        publishes_at: IpAddr,
        folder: &Path,
    ) -> Result<Docker, EngineError> {
        Daemon::elsewhere(address, credentials, publishes_at, folder).map(Docker::over)
    }

    fn over(daemon: Daemon) -> Docker {
        Docker {
            networks: tokio::sync::Mutex::default(),
            measuring: tokio::sync::Mutex::default(),
            helpers: Helpers::new(daemon.clone(), BUILDER_BASE),
            daemon,
            disks: InUse::default(),
            walls: None,
        }
    }
}

impl Docker {
    /// Uses only an engine that is recognized: any other one counts as unreachable.
    #[must_use]
    pub fn recognized_by(mut self, recognizes: Arc<dyn Recognizes>) -> Docker {
        self.daemon.recognized_by(recognizes);
        self.helpers.daemon = self.daemon.clone();
        self
    }
}

#[async_trait]
impl Engine for Docker {
    async fn about(&self) -> Result<About, EngineError> {
        let info = self.daemon.ask(LOOK, |client| async move {
            let spoken = client.client_version().to_string();
            client.info().await.map(|info| (info, spoken))
        });
        let (info, api) = info.await.map_err(|failure| failure.about("engine"))?;
        let memory = info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
        let cpus = info.ncpu.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or_default();
        let (id, version) = (info.id.unwrap_or_default(), info.server_version.unwrap_or_default());
        Ok(About { id, version, api, memory, cpus })
    }

    async fn inventory(&self, labels: &Labels) -> Result<Inventory, EngineError> {
        objects::inventory(&self.daemon, labels).await
    }

    async fn events(
        &self,
        labels: &Labels,
        since: Timestamp,
    ) -> Result<BoxStream<'static, Result<Event, EngineError>>, EngineError> {
        events::events(&self.daemon, labels, since).await
    }

    async fn ensure_network(&self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        objects::ensure_network(self, name, labels).await
    }

    async fn raise_walls(&self, peers: &Peers) -> Result<(), EngineError> {
        match &self.walls {
            Some(walls) => walls.raise(self, peers).await,
            None => Ok(()),
        }
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        objects::remove_network(&self.daemon, name).await
    }

    async fn ensure_volume(&self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        objects::ensure_volume(&self.daemon, name, labels).await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        objects::remove_volume(&self.daemon, name).await
    }

    async fn read_volume(&self, name: &str) -> Result<Archive, EngineError> {
        volumes::read(self, name).await
    }

    async fn write_volume(&self, name: &str, archive: Archive) -> Result<(), EngineError> {
        volumes::write(self, name, archive).await
    }

    async fn ensure_container(&self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        containers::ensure(&self.daemon, spec).await
    }

    async fn container(&self, name: &str) -> Result<Option<Container>, EngineError> {
        containers::find(&self.daemon, name).await
    }

    async fn start(&self, name: &str) -> Result<(), EngineError> {
        containers::start(&self.daemon, name).await
    }

    async fn stop(&self, name: &str, grace: Duration) -> Result<(), EngineError> {
        containers::stop(&self.daemon, name, grace).await
    }

    async fn remove_container(&self, name: &str) -> Result<(), EngineError> {
        containers::remove(&self.daemon, name).await
    }

    async fn logs(&self, name: &str, query: LogQuery) -> Result<Vec<LogLine>, EngineError> {
        logs::logs(&self.daemon, name, query).await
    }

    async fn usage(&self, name: &str) -> Result<Option<Usage>, EngineError> {
        usage::usage(&self.daemon, name).await
    }

    async fn disk_use(&self, labels: &Labels) -> Result<DiskUse, EngineError> {
        disk_use::disk_use(self, labels).await
    }

    async fn exec(
        &self,
        name: &str,
        exec: Exec,
        input: Option<BoxStream<'static, Bytes>>,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
        exec::exec(&self.daemon, name, exec, input).await
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        images::find(&self.daemon, reference).await
    }

    async fn resolve(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        images::resolve(&self.daemon, reference, login).await
    }

    async fn ensure_image(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Image, EngineError> {
        images::ensure(&self.daemon, reference, login).await
    }

    async fn build(
        &self,
        mut spec: BuildSpec,
        context: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError> {
        // Reports an unreachable daemon at once.
        self.daemon
            .ask(LOOK, |client| async move { client.ping().await })
            .await
            .map_err(|failure| failure.about("builder"))?;
        match spec.isolation.take() {
            Some(isolation) => Ok(isolated::build(self, spec, isolation, context)),
            None => build::build(&self.daemon, spec, build::Network::None, context).await,
        }
    }

    async fn save_image(&self, reference: &str) -> Result<Archive, EngineError> {
        Ok(image_archives::save(&self.daemon, reference))
    }

    async fn load_image(&self, archive: Archive) -> Result<(), EngineError> {
        image_archives::load(&self.daemon, archive).await
    }

    async fn tag(&self, reference: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        images::tag(&self.daemon, reference, repository, tag).await
    }

    async fn push(
        &self,
        repository: &str,
        tag: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        images::push(&self.daemon, repository, tag, login).await
    }

    async fn images(&self, labels: &Labels) -> Result<Vec<Image>, EngineError> {
        images::list(&self.daemon, labels).await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        images::remove(&self.daemon, reference).await
    }

    async fn prune_build_caches(&self, labels: &Labels, age: Duration) -> Result<u64, EngineError> {
        isolated::prune(self, labels, age).await?;
        images::prune(&self.daemon, age).await
    }
}
