//! A platform in this process, with a world outside that does nothing.

use crate::outcome::{Explain, Outcome};
use actix_rt::ArbiterHandle;
use actors::{
    ports::{Binaries, Clock, Examined, Mail, Passwords, PortError, Ports, Random},
    runtime::directory::Rules,
    world::World,
};
use async_trait::async_trait;
use contract::{ArtifactId, Email, Password, Timestamp, artifacts::ArtifactKind};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
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
        mail: nothing,
        publishers: Arc::default(),
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
