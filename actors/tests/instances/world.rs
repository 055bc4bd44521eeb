//! A world of owners over an engine that is a model.

use actix_rt::Arbiter;
use actors::{
    instances::watch::{Pace, Watch},
    nothing,
    ports::{Answered, Ask, Clock, Ports, Upstream, UpstreamError},
    runtime::directory::Rules,
    templates::catalogue::Catalogue,
    world::World,
};
use async_trait::async_trait;
use contract::Timestamp;
use engine::fake::Fake;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};
use store::{Memory, Store, StoreError};

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
    let upstream = Arc::new(Servers(engine.clone()));
    let ports = Ports { upstream, ..nothing::ports(Clock(now), Arc::new(engine.clone())) };
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
