//! The platform: what functions are served with.

use crate::{
    call::{authn::Authn, context::Call},
    kinds::{
        accounts::Lockout,
        organizations::MailLimit,
        table::{Owners, STORED},
    },
    ports::Ports,
    runtime::directory::Rules,
    world::World,
};
use actix_rt::ArbiterHandle;
use contract::{Fault, Server, Timestamp, authentication::Tier, text::Slug};
use std::{net::IpAddr, sync::Arc, time::Duration};
use store::{Record, Store};

/// What is settled when the service starts.
#[derive(Clone)]
pub struct Settings {
    /// Where clients reach the service, without a slash at the end.
    pub api_url: String,
    /// Required on every function call.
    pub application_id: String,
    /// Checked where a client sends one; where `require_javascript_key`, it must.
    pub javascript_key: Option<String>,
    /// Whether a client must send the JavaScript key.
    pub require_javascript_key: bool,
    /// Passes everywhere.
    pub master_key: String,
    /// Addresses that may use the master key.
    pub master_key_addresses: Vec<IpAddr>,
    /// Signs upload and download addresses.
    pub signing_key: [u8; 32],
    /// The tier of callers without an account.
    pub anonymous_tier: Tier,
    /// The largest artifact, in bytes.
    pub largest_artifact: u64,
    /// How long an upload address holds.
    pub upload_lifetime: Duration,
    /// How long a function may take.
    pub function_limit: Duration,
    /// What instances are made of where a caller names no template.
    pub default_templates: DefaultTemplates,
}

/// What instances are made of where a caller names no template.
#[derive(Debug, Clone)]
pub struct DefaultTemplates {
    /// The slug of the one for backends.
    pub backend: Slug,
    /// The slug of the one for market servers.
    pub market: Slug,
}

/// How long a download address holds.
pub const DOWNLOAD_LIFETIME: Duration = Duration::from_secs(3600);

/// What functions are served with. Shared by all threads.
#[derive(Clone)]
pub struct Platform {
    /// The store, the ports, the owners.
    pub world: Arc<World>,
    /// Who may, and how often.
    pub authn: Arc<Authn>,
    /// Failed sign-ins.
    pub lockout: Arc<Lockout>,
    /// Invitations sent.
    pub invitations: Arc<MailLimit>,
    /// What is settled.
    pub settings: Arc<Settings>,
    /// When the process started.
    pub started_at: Timestamp,
}

impl Server for Platform {
    type Context = Call;
}

/// What is kept beside the resources.
const DERIVED: &[&str] = &[
    <crate::kinds::accounts::Session as Record>::TREE,
    <crate::kinds::organizations::Memberships as Record>::TREE,
    <crate::kinds::artifacts::ArtifactRefs as Record>::TREE,
    <crate::kinds::releases::Current as Record>::TREE,
    <crate::kinds::tokens::LastUse as Record>::TREE,
    <crate::runtime::ref_count::RefCount as Record>::TREE,
    <crate::kinds::templates::catalogue::Shipped as Record>::TREE,
    <crate::kinds::instances::metrics::HourlyMetrics as Record>::TREE,
    <crate::kinds::deployments::DeploymentHistory as Record>::TREE,
    <crate::runtime::progress_log::Line as Record>::TREE,
    <crate::call::idempotency::StoredReply as Record>::TREE,
    <crate::call::audit::Event as Record>::TREE,
];

/// The kinds of records in the store.
pub fn kinds() -> Vec<&'static str> {
    [STORED, DERIVED].concat()
}

impl Platform {
    /// Starts the owners on the arbiters, and goes on with what was being done.
    pub async fn start(
        store: Store,
        ports: Ports,
        settings: Settings,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Platform, Fault> {
        let started_at = ports.clock.now();
        let settings = Arc::new(settings);
        let world = World::start(store, ports, arbiters, rules).await?;
        let authn = Arc::new(Authn::new(settings.clone()));
        let (lockout, invitations) = Default::default();
        Ok(Platform { world, authn, lockout, invitations, settings, started_at })
    }

    /// The doors to the owners.
    pub fn owners(&self) -> Result<&Owners, Fault> {
        self.world.owners()
    }
}
