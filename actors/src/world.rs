//! What owners have at hand: the store, the ports, and the doors to all other owners.

use crate::{
    background::engine_health::EngineHealth,
    kinds::{
        accounts::Accounts,
        apps::Apps,
        artifacts::Artifacts,
        backups::Backups,
        deployments::Deployments,
        image_builds::ImageBuilds,
        images::Images,
        instances::{Instances, metrics::LastLooks},
        organizations::Organizations,
        projects::Projects,
        releases::Releases,
        templates::Templates,
        tokens::Tokens,
    },
    ports::Ports,
    runtime::{directory::Rules, handle::Handle, health::Registry, resource::Resource},
};
use actix_rt::ArbiterHandle;
use contract::Fault;
use std::sync::{Arc, OnceLock};
use store::Store;

/// What owners and functions have at hand.
pub struct World {
    /// Where everything durable is.
    pub store: Store,
    /// The world outside.
    pub ports: Ports,
    /// Every actor in memory.
    pub registry: Registry,
    /// Whether the container engine is there.
    pub engine_health: EngineHealth,
    /// What containers used when they were last looked at.
    pub last_looks: LastLooks,
    owners: OnceLock<Owners>,
}

macro_rules! owners {
    ($($door:ident: $kind:ty),* $(,)?) => {
        /// The doors to the owners, one for each kind of resource.
        #[derive(Clone)]
        #[allow(missing_docs, reason = "each field is the door to the kind it names")]
        pub struct Owners {
            $(pub $door: Handle<$kind>),*
        }

        /// The kinds of resources, as the store names them.
        pub const RESOURCES: &[&str] = &[$(<$kind as Resource>::KIND),*];

        impl Owners {
            async fn start(
                world: &Arc<World>,
                arbiters: &[ArbiterHandle],
                rules: Rules,
            ) -> Result<Owners, Fault> {
                Ok(Owners { $($door: Handle::start(world, arbiters, rules).await?),* })
            }

            /// Goes on with what was being done when the process last ended.
            async fn resume(&self) {
                $(self.$door.resume().await;)*
            }

            /// Restarts the owner of this resource. False: it is not in memory.
            pub async fn restart(&self, id: &str) -> Result<bool, Fault> {
                $(if let Ok(id) = id.parse() {
                    return self.$door.restart(id).await;
                })*
                Ok(false)
            }
        }
    };
}

owners! {
    accounts: Accounts,
    organizations: Organizations,
    projects: Projects,
    apps: Apps,
    artifacts: Artifacts,
    releases: Releases,
    tokens: Tokens,
    images: Images,
    templates: Templates,
    instances: Instances,
    deployments: Deployments,
    backups: Backups,
    image_builds: ImageBuilds,
}

impl World {
    /// Starts the directories on the arbiters, and goes on with what was being done when the
    /// process last ended.
    pub async fn start(
        store: Store,
        ports: Ports,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Arc<World>, Fault> {
        let world = Arc::new(World {
            store,
            ports,
            registry: Registry::default(),
            engine_health: EngineHealth::default(),
            last_looks: LastLooks::default(),
            owners: OnceLock::new(),
        });
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
