//! What owners have at hand: the store, the ports, and the doors to all other owners.

use crate::{
    accounts::Accounts,
    apps::Apps,
    artifacts::Artifacts,
    backups::Backups,
    deployments::Deployments,
    image_builds::ImageBuilds,
    images::Images,
    instances::{EngineHealth, Instances, metrics::LastLooks},
    organizations::Organizations,
    ports::Ports,
    projects::Projects,
    releases::Releases,
    runtime::{directory::Rules, handle::Handle, health::Registry},
    templates::Templates,
    tokens::Tokens,
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

/// The doors to the owners, one for each kind of resource.
#[derive(Clone)]
#[allow(missing_docs, reason = "each field is the door to the kind it names")]
pub struct Owners {
    pub accounts: Handle<Accounts>,
    pub organizations: Handle<Organizations>,
    pub projects: Handle<Projects>,
    pub apps: Handle<Apps>,
    pub artifacts: Handle<Artifacts>,
    pub releases: Handle<Releases>,
    pub tokens: Handle<Tokens>,
    pub images: Handle<Images>,
    pub templates: Handle<Templates>,
    pub instances: Handle<Instances>,
    pub deployments: Handle<Deployments>,
    pub backups: Handle<Backups>,
    pub image_builds: Handle<ImageBuilds>,
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
        let owners = Owners {
            accounts: Handle::start(&world, arbiters, rules).await?,
            organizations: Handle::start(&world, arbiters, rules).await?,
            projects: Handle::start(&world, arbiters, rules).await?,
            apps: Handle::start(&world, arbiters, rules).await?,
            artifacts: Handle::start(&world, arbiters, rules).await?,
            releases: Handle::start(&world, arbiters, rules).await?,
            tokens: Handle::start(&world, arbiters, rules).await?,
            images: Handle::start(&world, arbiters, rules).await?,
            templates: Handle::start(&world, arbiters, rules).await?,
            instances: Handle::start(&world, arbiters, rules).await?,
            deployments: Handle::start(&world, arbiters, rules).await?,
            backups: Handle::start(&world, arbiters, rules).await?,
            image_builds: Handle::start(&world, arbiters, rules).await?,
        };
        let _ = world.owners.set(owners.clone());
        owners.accounts.resume().await;
        owners.organizations.resume().await;
        owners.projects.resume().await;
        owners.apps.resume().await;
        owners.artifacts.resume().await;
        owners.releases.resume().await;
        owners.tokens.resume().await;
        owners.images.resume().await;
        owners.templates.resume().await;
        owners.instances.resume().await;
        owners.deployments.resume().await;
        owners.backups.resume().await;
        owners.image_builds.resume().await;
        Ok(world)
    }

    /// The doors to the owners.
    pub fn owners(&self) -> Result<&Owners, Fault> {
        self.owners.get().ok_or(Fault::Busy)
    }
}

impl Owners {
    /// Restarts the owner of this resource. False: it is not in memory.
    pub async fn restart(&self, id: &str) -> Result<bool, Fault> {
        macro_rules! of {
            ($($owners:ident),+) => {
                $(if let Ok(id) = id.parse() {
                    return self.$owners.restart(id).await;
                })+
            };
        }
        of!(
            accounts,
            organizations,
            projects,
            apps,
            artifacts,
            releases,
            tokens,
            images,
            templates,
            instances,
            deployments,
            backups,
            image_builds
        );
        Ok(false)
    }
}
