//! A world of owners over a model of the container engine.

pub use crate::life::a_moment;
use crate::life::{open, time_passes};
use actix_rt::Arbiter;
use actors::{
    background::instance_reconciler::{InstanceReconciler, Intervals},
    kinds::{hosting::templates::catalogue::Catalogue, world::World},
    ports::{
        PortError, Ports,
        dumps::{DumpError, Dumps, Written},
        recipes::Recipes,
        sources::{Fetched, Inspected, KeyPair, Remote, SourceError, Sources},
        unavailable,
        upstream::Upstream,
    },
    runtime::{directory::Rules, manual_clock::ManualClock, turns::Tenant},
};
use async_trait::async_trait;
use bytes::Bytes;
use container_engine::fake::Fake;
use contract::{BackupId, Sha256, Timestamp, ssh::SshHostKey, text::GitUrl};
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use repository::{FileContent, Files};
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

/// How far the clock goes in a moment.
const STEP: Duration = Duration::from_millis(50);

/// A clock in the year 2026.
pub fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_millis(1_767_225_600_000))
}

pub fn engine(clock: &ManualClock) -> Fake {
    let clock = clock.port();
    let fake = Fake::new(move || clock.now());
    for image in ["postgres:15", "parseplatform/parse-server:9.10.1-alpha.13"] {
        fake.publish(image);
    }
    fake
}

/// Starts the owners, with the shipped catalogue, over the store in this folder.
pub async fn start(
    folder: &Path,
    (clock, engine): (&ManualClock, &Fake),
    arbiters: &[Arbiter],
) -> Arc<World> {
    start_with(folder, (clock, engine), arbiters, |ports| ports).await
}

/// Like [`start`], with other ports.
pub async fn start_with(
    folder: &Path,
    (clock, engine): (&ManualClock, &Fake),
    arbiters: &[Arbiter],
    replace: impl FnOnce(Ports) -> Ports,
) -> Arc<World> {
    let upstream = Arc::new(Servers(engine.clone()));
    let (sources, dumps) = (Arc::new(Repository), Arc::new(InMemory::default()));
    let world = unavailable::ports(clock.port(), Arc::new(engine.clone()));
    let archive = Bytes::from_static(b"an archive");
    let recipes = Recipes::new("node:22-slim".into(), None, [("vendure-server", archive)]);
    let recipes = Arc::new(recipes);
    let ports = replace(Ports { upstream, sources, dumps, recipes, ..world });
    let store = open(folder).await;
    let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
    let world = World::start(store, ports, &handles, Rules::default()).await.unwrap();
    actix_rt::spawn(time_passes(world.clone(), clock.clone(), handles, STEP));
    let catalogue = Catalogue::read(include_str!("../../../data/catalogue.json")).unwrap();
    catalogue.register(&world).await.unwrap();
    let intervals = Intervals { round: Duration::from_millis(200), ..Intervals::default() };
    InstanceReconciler::start(world.clone(), intervals);
    world
}

/// A server is healthy while its container runs.
struct Servers(Fake);

#[async_trait]
impl Upstream for Servers {
    async fn is_healthy(&self, server: SocketAddr, _: &str, _: Duration) -> bool {
        let names = self.0.containers();
        let containers = names.iter().filter_map(|name| self.0.peek(name));
        containers.into_iter().any(|c| c.port == Some(server.port()) && c.is_running())
    }
}

/// Every repository has the same commit.
struct Repository;

#[async_trait]
impl Sources for Repository {
    async fn fetch(&self, _: &Remote, _: &str, _: Duration) -> Result<Fetched, SourceError> {
        let context = stream::iter([Ok(Bytes::from_static(b"an archive"))]).boxed();
        Ok(Fetched { commit: "0".repeat(40), context })
    }

    async fn inspect(&self, _: &Remote, _: Duration) -> Result<Inspected, SourceError> {
        let config = r#"{"platforms": ["android"], "build": {"android": {"production": "make"}},
            "artifact": {"android": {"production": "app.apk"}}}"#;
        let files = Files { config: FileContent::Text(config.into()), ..Files::default() };
        Ok(Inspected { commit: "0".repeat(40), git_ref: "main".into(), files })
    }

    async fn host_key(
        &self,
        _: Tenant,
        _: &GitUrl,
        _: Duration,
    ) -> Result<SshHostKey, SourceError> {
        Err(SourceError::Refused("it is read over https".into()))
    }

    fn new_key_pair(&self, _: &str) -> Result<KeyPair, PortError> {
        Err(PortError("it is read over https".into()))
    }
}

/// Dumps in memory, and whether each of them is kept.
#[derive(Default)]
struct InMemory(Mutex<HashMap<BackupId, (Bytes, bool)>>);

#[async_trait]
impl Dumps for InMemory {
    async fn write(
        &self,
        id: BackupId,
        _: u64,
        plain: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<Written, DumpError> {
        let read: Result<Vec<Bytes>, io::Error> = plain.try_collect().await;
        let bytes = read.map_err(|e| DumpError::Source(e.to_string()))?.concat();
        let sha256 = "0".repeat(64).parse().unwrap();
        let size = bytes.len() as u64;
        self.0.lock().unwrap().insert(id, (bytes.clone().into(), false));
        Ok(Written { size, sha256, head: bytes.clone(), tail: bytes })
    }
    async fn keep(&self, id: BackupId, _: &Sha256) -> Result<(), DumpError> {
        self.0.lock().unwrap().get_mut(&id).unwrap().1 = true;
        Ok(())
    }
    async fn read(
        &self,
        id: BackupId,
        _: &Sha256,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, DumpError> {
        let (bytes, kept) = self.0.lock().unwrap().get(&id).unwrap().clone();
        assert!(kept, "{id} was never kept");
        Ok(stream::iter([Ok(bytes)]).boxed())
    }
    async fn discard(&self, id: BackupId) -> Result<(), DumpError> {
        self.0.lock().unwrap().remove(&id);
        Ok(())
    }
}
