//! A world of owners over an engine that is a model.

use actix_rt::Arbiter;
use actors::{
    images::Registries,
    instances::watch::{Pace, Watch},
    ports::{
        Answered, Ask, Binaries, Checkout, Clock, DumpError, Dumps, Examined, Mail, Passwords,
        PortError, Ports, Random, Site, SourceError, Sources, Upstream, UpstreamError, Written,
    },
    runtime::directory::Rules,
    sealed::Sealer,
    templates::catalogue::Catalogue,
    world::World,
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    ArtifactId, BackupId, Email, Password, Sha256, Timestamp, artifacts::ArtifactKind,
    deployments::GitSource,
};
use engine::fake::Fake;
use futures_util::stream::BoxStream;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};
use store::{Memory, Store, StoreError};

pub const INSTALLATION: &str = "svc_test";

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(since.as_millis() as i64)
}

pub fn engine() -> Fake {
    let fake = Fake::new(now);
    for image in ["postgres:15", "parseplatform/parse-server:9.10.0"] {
        fake.publish(image);
    }
    fake
}

/// Starts the owners, with the shipped catalogue, over the store in this folder.
pub async fn start(folder: &Path, engine: &Fake, arbiters: &[Arbiter]) -> Arc<World> {
    let nothing = Arc::new(Nothing);
    let ports = Ports {
        clock: Clock(now),
        random: Random::default(),
        passwords: nothing.clone(),
        binaries: nothing.clone(),
        mail: nothing.clone(),
        publishers: Arc::default(),
        engine: Arc::new(engine.clone()),
        upstream: Arc::new(Servers(engine.clone())),
        sources: nothing.clone(),
        dumps: nothing,
        registries: Arc::new(Registries::default()),
        sealer: Sealer::new([7; 32]),
        site: Arc::new(Site {
            installation: INSTALLATION.into(),
            api_url: "http://svc.test".into(),
        }),
    };
    let store = open(folder).await;
    let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
    let world = World::start(store, ports, &handles, Rules::default()).await.unwrap();
    let catalogue = Catalogue::read(include_str!("../../../data/catalogue.json")).unwrap();
    catalogue.register(&world).await.unwrap();
    let pace = Pace { every: Duration::from_millis(200), ..Pace::default() };
    Watch::start(world.clone(), pace);
    world
}

/// Opens the store, once those that had it before have let go of it.
async fn open(folder: &Path) -> Store {
    for _ in 0..500 {
        match Store::open(folder, &actors::platform::kinds(), Memory::default()) {
            Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the store is never let go of");
}

/// A server answers while its container runs.
struct Servers(Fake);

#[async_trait]
impl Upstream for Servers {
    async fn is_well(&self, port: u16, _: &str, _: Duration) -> bool {
        let names = self.0.containers();
        let containers = names.iter().filter_map(|name| self.0.peek(name));
        containers.into_iter().any(|c| c.port == Some(port) && c.is_running())
    }
    async fn ask(&self, _: Ask) -> Result<Answered, UpstreamError> {
        Err(UpstreamError::NotConnected)
    }
}

struct Nothing;

fn refused<T>() -> Result<T, PortError> {
    Err(PortError("there is no world outside".into()))
}

#[async_trait]
impl Sources for Nothing {
    async fn checkout(&self, _: &GitSource, _: Duration) -> Result<Checkout, SourceError> {
        Err(SourceError::Away("there is no world outside".into()))
    }
}

#[async_trait]
impl Passwords for Nothing {
    async fn hash(&self, _: Password) -> Result<String, PortError> {
        refused()
    }
    async fn verify(&self, _: Password, _: Option<String>) -> Result<bool, PortError> {
        refused()
    }
}

#[async_trait]
impl Binaries for Nothing {
    async fn reach(&self, _: ArtifactId) -> Result<(), PortError> {
        refused()
    }
    async fn staged(&self, _: ArtifactId) -> Result<Option<u64>, PortError> {
        refused()
    }
    async fn examine(&self, _: ArtifactId, _: ArtifactKind) -> Result<Examined, PortError> {
        refused()
    }
    async fn keep(&self, _: ArtifactId, _: &Examined) -> Result<(), PortError> {
        refused()
    }
    async fn discard(&self, _: ArtifactId) -> Result<(), PortError> {
        refused()
    }
}

#[async_trait]
impl Mail for Nothing {
    async fn send(&self, _: &Email, _: &str, _: &str) -> Result<(), PortError> {
        refused()
    }
}

#[async_trait]
impl Dumps for Nothing {
    async fn write(
        &self,
        _: BackupId,
        _: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<Written, DumpError> {
        Err(DumpError::Disk("there is no world outside".into()))
    }
    async fn keep(&self, _: BackupId) -> Result<(), DumpError> {
        Ok(())
    }
    async fn read(
        &self,
        _: BackupId,
        _: &Sha256,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, DumpError> {
        Err(DumpError::Disk("there is no world outside".into()))
    }
    async fn discard(&self, _: BackupId) -> Result<(), DumpError> {
        Ok(())
    }
}
