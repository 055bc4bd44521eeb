//! Who may use the service.

use super::parse_tier;
use clap::Args;
use contract::{authentication::Tier, service::Registration};
use std::net::IpAddr;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// Who may register an account: anybody, whoever has a pending invitation to an organization, or
    /// nobody. Superadmins and the master key make accounts with `svc_admin_createUser` in any case. Where anybody
    /// may, pages of instances are sandboxed without `--instance-domain`.
    #[arg(long, env = "SVC_REGISTRATION", value_enum, default_value = "open")]
    pub registration: WhoRegisters,
    /// Addresses that may use the master key, separated by commas.
    #[arg(
        long,
        env = "SVC_MASTER_KEY_ADDRESSES",
        value_delimiter = ',',
        default_value = "127.0.0.1,::1"
    )]
    pub master_key_addresses: Vec<IpAddr>,
    /// A bearer token that reads `/metrics` from any address. Without it, only the addresses that may
    /// use the master key read them.
    #[arg(long, env = "SVC_METRICS_TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
    /// Accept `GET /backend/login`, for old client libraries. Proxies log the password, which is in the
    /// address.
    #[arg(long, env = "SVC_LOGIN_BY_GET")]
    pub login_by_get: bool,
    /// The JavaScript key of client libraries. Without this setting, the service checks no
    /// JavaScript key.
    #[arg(long, env = "SVC_JAVASCRIPT_KEY", hide_env_values = true)]
    pub javascript_key: Option<String>,
    /// Refuse requests that carry no JavaScript key.
    #[arg(long, env = "SVC_REQUIRE_JAVASCRIPT_KEY", requires = "javascript_key")]
    pub require_javascript_key: bool,
    /// The rate limit tier of callers without an account: free, developer, professional or
    /// enterprise.
    #[arg(long, env = "SVC_ANONYMOUS_TIER", default_value = "free", value_parser = parse_tier)]
    pub anonymous_tier: Tier,
}

/// Who may register an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WhoRegisters {
    /// Anybody.
    Open,
    /// Whoever has an invitation to an organization.
    Invitation,
    /// Nobody.
    Closed,
}

impl From<WhoRegisters> for Registration {
    fn from(who: WhoRegisters) -> Self {
        match who {
            WhoRegisters::Open => Registration::Open,
            WhoRegisters::Invitation => Registration::Invitation,
            WhoRegisters::Closed => Registration::Closed,
        }
    }
}
