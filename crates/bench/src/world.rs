//! A platform in this process, with a world outside that does nothing.

use crate::outcome::{Explain, Outcome};
use actix_rt::ArbiterHandle;
use actors::{
    ports::{Clock, unavailable},
    runtime::directory::Rules,
    world::World,
};
use container_engine::fake::Fake;
use contract::Timestamp;
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use store::Store;

/// A world over this store, its owners on these arbiters.
pub async fn start(store: Store, arbiters: &[ArbiterHandle]) -> Outcome<Arc<World>> {
    let ports = unavailable::ports(Clock(now), Arc::new(Fake::new(now)));
    World::start(store, ports, arbiters, Rules::default()).await.or_say("the world")
}

#[allow(clippy::disallowed_methods, reason = "it is the port")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
