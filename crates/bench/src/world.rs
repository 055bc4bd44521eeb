//! A platform in this process, with ports that are not available.

use crate::outcome::{Explain, Outcome};
use actix_rt::ArbiterHandle;
use actors::{
    kinds::world::World,
    ports::unavailable,
    runtime::{
        clock::{Clock, Time},
        directory::Rules,
    },
};
use container_engine::fake::Fake;
use contract::Timestamp;
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use store::Store;

/// Starts a world with this store and its owners on these arbiters.
pub async fn start(store: Store, arbiters: &[ArbiterHandle]) -> Outcome<Arc<World>> {
    let ports = unavailable::ports(Clock::new(System), Arc::new(Fake::new(|| System.now())));
    World::start(store, ports, arbiters, Rules::default()).await.or_say("the world")
}

struct System;

#[allow(clippy::disallowed_methods, reason = "it is the port")]
impl Time for System {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn uptime(&self) -> Option<actors::runtime::clock::Uptime> {
        None
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}
