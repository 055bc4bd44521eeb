//! The platform: the state that every handler uses.

use super::{authn::Authn, context::Call, lockout::Lockout, mail_limit::MailLimit};
use crate::{kinds::world::World, ports::Ports, runtime::directory::Rules};
use actix_rt::ArbiterHandle;
use contract::{Fault, Server, WebUrl, authentication::Tier, text::Slug};
use std::{net::IpAddr, sync::Arc, time::Duration};
use store::Store;

/// The settings, fixed when the service starts.
#[derive(Clone)]
pub struct Settings {
    /// The URL at which clients reach the service, without a slash at the end.
    pub api_url: String,
    /// The URL at which people reach the dashboard, without a slash at the end, where it is known.
    pub dashboard_url: Option<String>,
    /// Every function call needs it, except a call with a deploy token.
    pub application_id: String,
    /// A client that sends a JavaScript key must send this one.
    pub javascript_key: Option<String>,
    /// Whether a client without the master key must send the JavaScript key.
    pub require_javascript_key: bool,
    /// Passes every authorization check.
    pub master_key: String,
    /// Who has it may create the first administrator.
    pub first_start_token: Option<String>,
    /// Addresses that may use the master key.
    pub master_key_addresses: Vec<IpAddr>,
    /// Signs upload and download addresses, and keys the stored digests of client addresses and
    /// parameters.
    pub signing_key: [u8; 32],
    /// The tier of callers without an account.
    pub anonymous_tier: Tier,
    /// The largest artifact, in bytes.
    pub largest_artifact: u64,
    /// How long an upload address is valid.
    pub upload_lifetime: Duration,
    /// Who may issue identity tokens of CI jobs; the first one by default.
    pub oidc_issuers: Vec<WebUrl>,
    /// How long a build may take on a runner.
    pub build_limit: Duration,
    /// The deadline of functions that declare none of their own.
    pub function_limit: Duration,
    /// The most text of an instance's log in one reply, in bytes.
    pub largest_log_reply: u64,
    pub default_templates: DefaultTemplates,
}

impl Settings {
    /// The address of a page of the dashboard with a token filled in. Tokens need no escaping: they
    /// are letters, digits and underscores.
    pub fn dashboard_link(&self, page: &str, token: &str) -> Option<String> {
        self.dashboard_url.as_ref().map(|url| format!("{url}{page}?token={token}"))
    }
}

/// The templates of instances for which a caller names none, by slug.
#[derive(Debug, Clone)]
pub struct DefaultTemplates {
    pub backend: Slug,
    pub market: Slug,
}

/// How long a download address is valid.
pub const DOWNLOAD_LIFETIME: Duration = Duration::from_secs(3600);

/// The state that every handler uses. All threads share it.
#[derive(Clone)]
pub struct Platform {
    pub world: Arc<World>,
    pub authn: Arc<Authn>,
    /// Counts failed sign-ins.
    pub lockout: Arc<Lockout>,
    /// Counts the mails of invitations.
    pub invitations: Arc<MailLimit>,
    pub settings: Arc<Settings>,
}

impl Server for Platform {
    type Context = Call;
}

impl Platform {
    /// Starts the owners on the arbiters and resumes their work.
    pub async fn start(
        store: Store,
        ports: Ports,
        settings: Settings,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Platform, Fault> {
        let settings = Arc::new(settings);
        let world = World::start(store, ports, arbiters, rules).await?;
        let authn = Arc::new(Authn::new(settings.clone(), world.store.is_alone()));
        let (store, random) = (world.store.clone(), world.ports.random.clone());
        let invitations = Arc::new(MailLimit { store: store.clone(), random: random.clone() });
        let clock = world.ports.clock.clone();
        let lockout = Arc::new(Lockout::new(store, clock, random, settings.signing_key));
        Ok(Platform { world, authn, lockout, invitations, settings })
    }
}
