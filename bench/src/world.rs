//! A platform in this process, with a world outside that does nothing.

use crate::outcome::{Explain, Outcome};
use actix_rt::ArbiterHandle;
use actors::{
    images::Registries,
    ports::{
        Answered, Ask, Binaries, Checkout, Clock, DumpError, Dumps, Examined, Mail, Passwords,
        PortError, Ports, Random, Site, SourceError, Sources, Upstream, UpstreamError, Written,
    },
    runtime::directory::Rules,
    sealed::Sealer,
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
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use store::Store;

/// A world over this store, its owners on these arbiters.
pub async fn start(store: Store, arbiters: &[ArbiterHandle]) -> Outcome<Arc<World>> {
    let nothing = Arc::new(Nothing);
    let ports = Ports {
        clock: Clock(now),
        random: Random::default(),
        passwords: nothing.clone(),
        binaries: nothing.clone(),
        mail: nothing.clone(),
        publishers: Arc::default(),
        engine: Arc::new(Fake::new(now)),
        upstream: nothing.clone(),
        sources: nothing.clone(),
        dumps: nothing,
        registries: Arc::new(Registries::default()),
        sealer: Sealer::new([0; 32]),
        site: Arc::new(Site { installation: "bench".into(), api_url: "http://svc.test".into() }),
    };
    World::start(store, ports, arbiters, Rules::default()).await.or_say("the world")
}

#[allow(clippy::disallowed_methods, reason = "it is the port")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Refuses everything.
struct Nothing;

fn refused<T>() -> Result<T, PortError> {
    Err(PortError("there is no world outside".into()))
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
impl Upstream for Nothing {
    async fn is_well(&self, _: u16, _: &str, _: Duration) -> bool {
        true
    }
    async fn ask(&self, _: Ask) -> Result<Answered, UpstreamError> {
        Err(UpstreamError::NotConnected)
    }
}

#[async_trait]
impl Sources for Nothing {
    async fn checkout(&self, _: &GitSource, _: Duration) -> Result<Checkout, SourceError> {
        Err(SourceError::Away("there is no world outside".into()))
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
