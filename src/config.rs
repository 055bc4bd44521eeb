//! Settings. A flag wins over its environment variable; the variable wins over the default.

use clap::{ArgAction, Args, builder::TypedValueParser};
use contract::{
    AppId, WebUrl,
    authentication::Tier,
    service::Registration,
    text::{GitRef, ImageRepository, PlanCode, RepositoryName, Slug},
    trusted_publishers::GITHUB,
};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};
use url::Url;

/// How the server runs. Every setting is a flag and an environment variable.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The directory for run-time state: the store, secrets, staged uploads, artifacts and backups.
    #[arg(long, env = "SVC_DATA", default_value = "data/run")]
    pub data: PathBuf,
    /// The address to listen on.
    #[arg(long, env = "SVC_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The address at which clients reach the service. The default is `http://` and the listening
    /// address.
    #[arg(long, env = "SVC_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// The address on which the dashboard listens. It is never that of the service, which forwards
    /// requests to instances: their pages must not reach the sessions of the dashboard.
    #[arg(long, env = "SVC_DASHBOARD_LISTEN", default_value = "127.0.0.1:8090")]
    pub dashboard_listen: SocketAddr,
    /// The address at which people reach the dashboard. The default is `http://localhost` with the
    /// port, or `http://` and the listening address. From other machines, browsers keep a session only
    /// over https.
    #[arg(long, env = "SVC_DASHBOARD_URL")]
    pub dashboard_url: Option<Url>,
    /// The number of HTTP worker threads. The default is the number of processors.
    #[arg(long, env = "SVC_WORKERS")]
    pub workers: Option<usize>,
    /// The log filter, such as `info` or `svc=debug,warn`.
    #[arg(long, env = "SVC_LOG", default_value = "info")]
    pub log: String,
    /// The format of log lines.
    #[arg(long, env = "SVC_LOG_FORMAT", value_enum, default_value = "pretty")]
    pub log_format: LogFormat,
    /// Origins whose pages may call the service, separated by commas. The default allows every
    /// origin.
    #[arg(long, env = "SVC_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<String>,
    /// Who may register an account: anybody, whoever has a pending invitation to an organization, or
    /// nobody. Superadmins and the master key make accounts with `svc_admin_createUser` in any case.
    #[arg(long, env = "SVC_REGISTRATION", value_enum, default_value = "open")]
    pub registration: WhoRegisters,
    /// Addresses of proxies whose X-Forwarded headers the service trusts, separated by commas.
    #[arg(long, env = "SVC_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpAddr>,
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
    /// The maximum size of an artifact, in bytes.
    #[arg(long, env = "SVC_MAX_ARTIFACT_BYTES", default_value_t = 4 << 30)]
    pub max_artifact_bytes: u64,
    /// The maximum size of a JSON body, in bytes.
    #[arg(long, env = "SVC_MAX_BODY_BYTES", default_value_t = 1 << 20)]
    pub max_body_bytes: usize,
    /// The maximum number of open connections. The limit of open files may lower it.
    #[arg(long, env = "SVC_MAX_CONNECTIONS", default_value_t = 10_000)]
    pub max_connections: usize,
    /// Memory for JSON bodies that are still arriving, in bytes.
    #[arg(long, env = "SVC_MAX_ARRIVING_BYTES", default_value_t = 64 << 20)]
    pub max_arriving_bytes: usize,
    /// The maximum number of uploads that send at the same time.
    #[arg(long, env = "SVC_MAX_UPLOADS", default_value_t = 128)]
    pub max_uploads: usize,
    /// The lifetime of an upload address, in seconds.
    #[arg(long, env = "SVC_UPLOAD_URL_TTL", default_value_t = 3600)]
    pub upload_url_ttl: u64,
    /// Who may issue identity tokens of CI jobs, in the form of GitHub's.
    #[arg(long, env = "SVC_OIDC_ISSUERS", value_delimiter = ',', default_value = GITHUB)]
    pub oidc_issuers: Vec<WebUrl>,
    /// A folder with trusted roots of Sigstore (`trusted_root.json` files), in place of those of the
    /// program. The service reads the files again when they change.
    #[arg(long, env = "SVC_TRUSTED_ROOTS")]
    pub trusted_roots: Option<PathBuf>,
    /// The client id or the app id of this service's GitHub App. With an app, repositories on GitHub
    /// need no token, and their builds run in GitHub Actions.
    #[arg(long, env = "SVC_GITHUB_APP_ID", requires = "github_app_key")]
    pub github_app_id: Option<String>,
    /// The file with the private key of the GitHub App.
    #[arg(long, env = "SVC_GITHUB_APP_KEY", requires = "github_app_id")]
    pub github_app_key: Option<PathBuf>,
    /// The address of GitHub's pages and repositories.
    #[arg(long, env = "SVC_GITHUB_URL", default_value = "https://github.com")]
    pub github_url: String,
    /// The address of GitHub's API. That of a GitHub Enterprise Server ends in `/api/v3`.
    #[arg(long, env = "SVC_GITHUB_API_URL", default_value = "https://api.github.com")]
    pub github_api_url: String,
    /// The address of the Google Play Developer API.
    #[arg(
        long,
        env = "SVC_GOOGLE_PLAY_URL",
        default_value = "https://androidpublisher.googleapis.com"
    )]
    pub google_play_url: String,
    /// The address of Firebase App Distribution.
    #[arg(
        long,
        env = "SVC_FIREBASE_URL",
        default_value = "https://firebaseappdistribution.googleapis.com"
    )]
    pub firebase_url: String,
    /// Where Google gives access tokens to service accounts.
    #[arg(
        long,
        env = "SVC_GOOGLE_TOKEN_URL",
        default_value = "https://oauth2.googleapis.com/token"
    )]
    pub google_token_url: String,
    /// The address of the App Store Connect API.
    #[arg(
        long,
        env = "SVC_APP_STORE_CONNECT_URL",
        default_value = "https://api.appstoreconnect.apple.com"
    )]
    pub app_store_connect_url: String,
    /// A repository of this service on GitHub with the workflow `svc-central.yml`, such as
    /// acme/svc-builds or acme/svc-builds@v1. Its GitHub Actions build the apps whose own repository
    /// does not. The default branch of the reference is main.
    #[arg(
        long,
        env = "SVC_CENTRAL_REPOSITORY",
        requires = "github_app_id",
        value_parser = parse_central
    )]
    pub central_repository: Option<(RepositoryName, GitRef)>,
    /// How long a build may take, in seconds.
    #[arg(long, env = "SVC_BUILD_LIMIT", default_value_t = 7200)]
    pub build_limit: u64,
    /// How long a deployment may take from its turn until it serves, in seconds.
    #[arg(long, env = "SVC_DEPLOYMENT_LIMIT", default_value_t = 1800, value_parser = seconds())]
    pub deployment_limit: u32,
    /// How long a build of a container image may take from its turn, in seconds.
    #[arg(long, env = "SVC_IMAGE_BUILD_LIMIT", default_value_t = 7200, value_parser = seconds())]
    pub image_build_limit: u32,
    /// The most text of a log in one reply, in bytes.
    #[arg(
        long,
        env = "SVC_MAX_LOG_BYTES",
        default_value_t = 1 << 20,
        value_parser = clap::value_parser!(u64).range(1024..=64 << 20)
    )]
    pub max_log_bytes: u64,
    /// The deadline of a function call, in seconds.
    #[arg(long, env = "SVC_FUNCTION_TIMEOUT", default_value_t = 30)]
    pub function_timeout: u64,
    /// The mail server, such as smtps://user:password@mail.example.com. Without one, the service
    /// writes each mail to its log.
    #[arg(long, env = "SVC_MAIL_URL", hide_env_values = true)]
    pub mail_url: Option<String>,
    /// The sender address of mail.
    #[arg(long, env = "SVC_MAIL_FROM", default_value = "svc@localhost")]
    pub mail_from: String,
    /// An S3 bucket for artifacts, such as s3://bucket/prefix. Credentials and endpoint come from
    /// the AWS_ variables. The default is a folder of the data directory.
    #[arg(long, env = "SVC_ARTIFACT_STORE")]
    pub artifact_store: Option<String>,
    /// The container engine, such as unix:///var/run/docker.sock. The default is the local engine.
    #[arg(long, env = "SVC_DOCKER_HOST")]
    pub docker_host: Option<String>,
    /// Image repositories and their mirrors, such as postgres=registry.example.com/postgres,
    /// separated by commas. The service pulls from the mirror.
    #[arg(long, env = "SVC_IMAGE_MIRRORS", value_delimiter = ',', value_parser = parse_mirror)]
    pub image_mirrors: Vec<(String, String)>,
    /// The image that the shipped recipes of images build upon: Node 22 or later with npm. It is
    /// pulled without a login if it is not on the machine of the container engine.
    #[arg(long, env = "SVC_RECIPE_BASE_IMAGE", default_value = "node:22-slim")]
    pub recipe_base_image: String,
    /// The npm registry of the shipped recipes, such as `https://npm.example.com`. The default is
    /// npm's own. The history of the images shows it, so it must not contain a password.
    #[arg(long, env = "SVC_RECIPE_NPM_REGISTRY")]
    pub recipe_npm_registry: Option<WebUrl>,
    /// A file with logins for image registries, in the format that `docker login` writes.
    #[arg(long, env = "SVC_REGISTRY_LOGINS")]
    pub registry_logins: Option<PathBuf>,
    /// Hosts of git repositories that may lie on the internal network, such as
    /// git.example.com:8443, separated by commas. The default port is 443, also for ssh. All other
    /// hosts must be on the public internet.
    #[arg(
        long,
        env = "SVC_GIT_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub git_private_hosts: Vec<(String, u16)>,
    /// Receivers of webhooks that may lie on the internal network, such as hooks.example.com:8443,
    /// separated by commas. They may be reached over http. All others must be on the public internet.
    #[arg(
        long,
        env = "SVC_WEBHOOK_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub webhook_private_hosts: Vec<(String, u16)>,
    /// The address of Paystack.
    #[arg(long, env = "SVC_PAYSTACK_URL", default_value = payments::paystack::ADDRESS)]
    pub paystack_url: String,
    /// The address of Stripe.
    #[arg(long, env = "SVC_STRIPE_URL", default_value = payments::stripe::ADDRESS)]
    pub stripe_url: String,
    /// The app to whose plans people subscribe for a higher tier on this service.
    #[arg(long, env = "SVC_PLATFORM_APP", requires = "platform_plans")]
    pub platform_app: Option<AppId>,
    /// The tiers that plans of that app give, such as `PLN_abc=developer,PLN_def=professional`.
    #[arg(
        long,
        env = "SVC_PLATFORM_PLANS",
        value_delimiter = ',',
        value_parser = parse_plan,
        requires = "platform_app"
    )]
    pub platform_plans: Vec<(PlanCode, Tier)>,
    /// Hosts of shops that may be on the internal network, with their ports, separated by commas, such
    /// as `shop.internal:3000`.
    #[arg(
        long,
        env = "SVC_SHOP_PRIVATE_HOSTS",
        value_delimiter = ',',
        value_parser = parse_host_and_port
    )]
    pub shop_private_hosts: Vec<(String, u16)>,
    /// Build users' repositories even if other machines can reach the service. A build is not
    /// isolated: its Dockerfile can reach everything on the network of this machine.
    #[arg(
        long,
        env = "SVC_TRUST_BUILDS",
        action = ArgAction::Set,
        num_args = 0..=1,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub trust_builds: bool,
    /// The slug of the template for backends that are created without a template.
    #[arg(long, env = "SVC_BACKEND_TEMPLATE", default_value = "parse-server-postgresql")]
    pub backend_template: Slug,
    /// The slug of the template for market servers that are created without a template.
    #[arg(long, env = "SVC_MARKET_TEMPLATE", default_value = "vendure")]
    pub market_template: Slug,
    /// The interval between two checks of all instances, in seconds.
    #[arg(long, env = "SVC_WATCH_INTERVAL", default_value_t = 10)]
    pub watch_interval: u64,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Pretty,
    /// JSON for programs.
    Json,
}

/// From a second to a week.
fn seconds() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=7 * 24 * 3600)
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

fn parse_mirror(text: &str) -> Result<(String, String), String> {
    let (of, instead) =
        text.split_once('=').ok_or("must be such as postgres=registry.example.com/postgres")?;
    let repository = |text: &str| text.parse::<ImageRepository>().map(String::from);
    Ok((repository(of)?, repository(instead)?))
}

fn parse_central(text: &str) -> Result<(RepositoryName, GitRef), String> {
    let (repository, git_ref) = text.split_once('@').unwrap_or((text, "main"));
    Ok((repository.parse()?, git_ref.parse()?))
}

/// Splits a host from its port. An IPv6 address stands in brackets, as in a URL.
fn parse_host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text} must be a host, or a host and a port such as localhost:8443");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (text, 443),
    };
    let is_bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || is_bare_v6 || host.contains('/') {
        return Err(wrong());
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn parse_plan(text: &str) -> Result<(PlanCode, Tier), String> {
    let (plan, tier) = text.split_once('=').ok_or("must be such as PLN_abc=developer")?;
    Ok((plan.parse()?, parse_tier(tier)?))
}

fn parse_tier(text: &str) -> Result<Tier, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "must be free, developer, professional or enterprise".into())
}

/// Whether an address leads to this machine, wherever it is opened.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl ServeArgs {
    /// The address at which clients reach the service, without a trailing slash.
    pub fn api_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen),
        }
    }

    /// The address at which people reach the dashboard. On this machine it is `localhost`, so that
    /// browsers keep its session apart from the pages of instances at `127.0.0.1`: ports share cookies.
    pub fn dashboard_url(&self) -> Result<Url, String> {
        let listen = self.dashboard_listen;
        let default = if listen.ip().is_loopback() {
            format!("http://localhost:{}", listen.port())
        } else {
            format!("http://{listen}")
        };
        let wrong = |e| format!("the address of the dashboard or of the service: {e}");
        let url = self.dashboard_url.clone().map_or_else(|| Url::parse(&default), Ok);
        let (url, service) = (url.map_err(wrong)?, Url::parse(&self.api_url()).map_err(wrong)?);
        if url.origin() == service.origin() {
            return Err(format!(
                "the dashboard cannot be at {url}: there is the service, which forwards to instances, and their pages must not reach the sessions of the dashboard; choose another --dashboard-url"
            ));
        }
        Ok(url)
    }

    /// The address of the dashboard for people who are elsewhere, without a slash at the end. `None` if
    /// others reach the service, but the operator has not said where they reach the dashboard.
    pub fn known_dashboard_url(&self) -> Option<String> {
        let (url, service) = (self.dashboard_url().ok()?, Url::parse(&self.api_url()).ok()?);
        let is_known = self.dashboard_url.is_some() || is_local(&service);
        is_known.then(|| url.as_str().trim_end_matches('/').to_owned())
    }

    /// Whether the settings say that other machines reach the service: it or its dashboard listens beyond
    /// loopback, has an address beyond it, or trusts a proxy.
    pub fn is_reachable(&self) -> bool {
        let listens = [self.listen, self.dashboard_listen];
        let public = self.public_url.as_deref().and_then(|url| Url::parse(url).ok());
        let urls = [public.as_ref(), self.dashboard_url.as_ref()];
        !listens.iter().all(|listen| listen.ip().to_canonical().is_loopback())
            || !urls.into_iter().flatten().all(is_local)
            || self.public_url.is_some() && public.is_none()
            || !self.trusted_proxies.is_empty()
    }

    pub fn upload_lifetime(&self) -> Duration {
        Duration::from_secs(self.upload_url_ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn args(flags: &[&str]) -> ServeArgs {
        Line::parse_from([&["svc"], flags].concat()).args
    }

    #[test]
    fn the_settings_say_whether_others_reach_the_service() {
        for local in [
            ["--listen", "127.0.0.1:1"],
            ["--listen", "[::1]:1"],
            ["--dashboard-listen", "127.0.0.1:2"],
            ["--public-url", "http://localhost:8080"],
            ["--public-url", "http://[::1]:8080"],
            ["--dashboard-url", "http://localhost:8090"],
        ] {
            assert!(!args(&local).is_reachable(), "{local:?}");
        }
        for reached in [
            ["--listen", "0.0.0.0:1"],
            ["--listen", "[::]:1"],
            ["--listen", "10.0.0.1:1"],
            ["--dashboard-listen", "0.0.0.0:1"],
            ["--public-url", "https://svc.example.com"],
            ["--public-url", "svc.example.com"],
            ["--dashboard-url", "https://dashboard.example.com"],
            ["--trusted-proxies", "127.0.0.1"],
        ] {
            assert!(args(&reached).is_reachable(), "{reached:?}");
        }
    }

    #[test]
    fn a_private_host_is_one_port_of_it() {
        let read = |text| parse_host_and_port(text).unwrap();
        assert_eq!(read("Git.example.com"), ("git.example.com".into(), 443));
        assert_eq!(read("localhost:80"), ("localhost".into(), 80));
        assert_eq!(read("[::1]:80"), ("[::1]".into(), 80));
        assert_eq!(read("[::1]"), ("[::1]".into(), 443));
        for wrong in ["", ":80", "::1", "a:b", "a:70000", "https://a", "a/b"] {
            assert!(parse_host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
