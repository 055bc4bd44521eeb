//! What owners have at hand: the store, the ports, and the doors to all other owners.

use crate::{
    background::engine_health::EngineHealth,
    kinds::{
        backup_schedules, image_builds::queue::BuildQueue, instances::metrics::LastReadings,
        table::Owners,
    },
    ports::Ports,
    runtime::{directory::Rules, health::Registry, store::Store},
};
use actix_rt::ArbiterHandle;
use contract::Fault;
use std::sync::{Arc, OnceLock};

/// What owners and functions have at hand.
pub struct World {
    /// Where everything durable is.
    pub store: Store,
    /// The world outside.
    pub ports: Ports,
    /// Every actor in memory.
    pub registry: Registry,
    /// Whether the container engine answers.
    pub engine_health: EngineHealth,
    /// The last resource reading of each container.
    pub last_readings: LastReadings,
    /// The builds that are under way and those that wait.
    pub builds: BuildQueue,
    owners: OnceLock<Owners>,
}

impl World {
    /// Starts the directories on the arbiters, and goes on with what was being done when the
    /// process last ended.
    pub async fn start(
        store: store::Store,
        ports: Ports,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Arc<World>, Fault> {
        let world = Arc::new(World {
            store: store.into(),
            ports,
            registry: Registry::default(),
            engine_health: EngineHealth::default(),
            last_readings: LastReadings::default(),
            builds: BuildQueue::default(),
            owners: OnceLock::new(),
        });
        // Before there are owners, who would remember the records as they were.
        if let Err(fault) = backup_schedules::carry_over(&world).await {
            tracing::error!(error = %fault, "schedules of an earlier version were not carried over");
        }
        let owners = Owners::start(&world, arbiters, rules).await?;
        let _ = world.owners.set(owners.clone());
        owners.resume().await;
        Ok(world)
    }

    /// The doors to the owners.
    pub fn owners(&self) -> Result<&Owners, Fault> {
        self.owners.get().ok_or(Fault::Busy)
    }
}
