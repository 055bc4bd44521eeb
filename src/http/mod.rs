//! The HTTP server: function calls, the session routes of client libraries, artifact endpoints,
//! install pages, and endpoints for operators.

mod body;
mod budget;
pub mod by_host;
mod confine;
mod cors;
pub mod dashboard;
mod download;
mod endpoints;
pub mod fast_path;
mod functions;
mod html;
mod install;
mod instances;
mod operators;
pub mod paced;
mod parse_rest;
mod payments;
pub mod proxy;
mod push;
mod reply;
mod request;
mod secure;
pub mod served;
mod source;
mod staging;
pub mod tls;
mod upload;

use crate::{
    adapters::{acme::Proofs, binaries::Vault, dumps::DumpFolder, folders::FolderStore},
    config::ServeArgs,
    telemetry::Figures,
};
use actix_http::RequestHead;
use actix_web::{HttpRequest, HttpResponse, http::Method, web};
use actors::{
    call::{platform::Platform, rate_limit::RateKey, router::Router},
    runtime::permit::Permits,
};
use budget::{Budget, Share};
use contract::Fault;
use reply::Heading;
use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// What a request handler needs. Each worker has its own; `shared` belongs to all workers.
#[derive(Clone)]
pub struct Edge {
    pub platform: Platform,
    /// The router of this worker.
    pub router: actix::Addr<Router>,
    pub vault: Arc<Vault>,
    pub dumps: Arc<DumpFolder>,
    pub folders: Arc<FolderStore>,
    pub shared: Arc<Shared>,
}

impl Edge {
    /// Waits a moment for what other nodes have changed. Without the database, the copy has to do.
    pub async fn catch_up(&self) {
        let world = &self.platform.world;
        let _ = world.ports.clock.limit(CATCHES_UP_WITHIN, world.store.catch_up()).await;
    }
}

/// State that all workers share.
pub struct Shared {
    pub figures: Figures,
    /// The document at `/openapi.json`, built on the first request: building it takes megabytes.
    pub openapi: OnceLock<web::Bytes>,
    /// Origins whose pages may call the service. Empty means all.
    pub origins: HashSet<String>,
    /// Proxies whose `X-Forwarded` headers the service trusts.
    pub trusted_proxies: HashSet<IpAddr>,
    /// The bearer token that reads the metrics from any address.
    pub metrics_token: Option<String>,
    /// Whether credentials in an address may sign in.
    pub login_by_get: bool,
    /// Permits for running calls of all workers.
    pub in_flight: Permits,
    /// Distinguishes request ids of this process from those of other processes.
    pub process: u32,
    /// Counts requests, for request ids.
    pub requests: AtomicU64,
    /// The maximum size of a JSON body, in bytes.
    pub largest_body: usize,
    /// Open connections.
    pub connections: Arc<Budget>,
    /// Those of them that are connections to the dashboard.
    pub dashboard_connections: Arc<Budget>,
    /// Memory for JSON bodies that are still arriving, in bytes.
    pub arriving: Arc<Budget>,
    /// Running uploads. Each occupies a thread that writes.
    pub uploads: Arc<Budget>,
    /// What authorities of certificates are shown.
    pub proofs: Arc<Proofs>,
    /// Whether this process serves host names over TLS. Then it sends clients of those names there.
    pub serves_tls: bool,
}

impl Shared {
    /// `room` is the number of connections that the limit of open files allows.
    pub fn new(args: &ServeArgs, room: usize, proofs: Arc<Proofs>) -> Result<Self, String> {
        let mut process = [0; 4];
        getrandom::fill(&mut process).map_err(|e| e.to_string())?;
        Ok(Shared {
            figures: Figures::default(),
            openapi: OnceLock::new(),
            origins: origins(args),
            trusted_proxies: args
                .network
                .trusted_proxies
                .iter()
                .map(IpAddr::to_canonical)
                .collect(),
            metrics_token: args.access.metrics_token.clone(),
            login_by_get: args.access.login_by_get,
            in_flight: Permits::new(MOST_IN_FLIGHT),
            process: u32::from_be_bytes(process),
            requests: AtomicU64::new(0),
            largest_body: args.limits.max_body_bytes,
            connections: Budget::new(args.limits.max_connections.min(room)),
            dashboard_connections: Budget::new(MOST_AT_DASHBOARD),
            arriving: Budget::new(args.limits.max_arriving_bytes),
            uploads: Budget::new(args.limits.max_uploads),
            proofs,
            serves_tls: args.tls.https_listen.is_some(),
        })
    }

    /// The id of a request that carries none.
    pub fn new_request_id(&self) -> String {
        let n = self.requests.fetch_add(1, Relaxed);
        format!("{:08x}{n:012x}", self.process)
    }

    /// Takes a place for a connection. A trusted proxy has no limit of its own, because many
    /// clients share its address.
    pub fn connect(&self, peer: IpAddr) -> Result<ConnectionPermit, Fault> {
        let all = self.connections.share(self.holder(peer), 1)?;
        Ok(ConnectionPermit { _of_all: all, _of_dashboard: None })
    }

    /// Takes a place for a connection to the dashboard.
    pub fn connect_to_dashboard(&self, peer: IpAddr) -> Result<ConnectionPermit, Fault> {
        let dashboard = self.dashboard_connections.share(self.holder(peer), 1)?;
        Ok(ConnectionPermit { _of_dashboard: Some(dashboard), ..self.connect(peer)? })
    }

    /// Takes a place for a request to the dashboard, on a connection that was not made to it alone.
    fn place_at_dashboard(&self, peer: IpAddr) -> Result<Share, Fault> {
        self.dashboard_connections.share(self.holder(peer), 1)
    }

    fn holder(&self, peer: IpAddr) -> Option<RateKey> {
        let peer = peer.to_canonical();
        (!self.trusted_proxies.contains(&peer)).then(|| RateKey::address(peer))
    }
}

/// Marks the connections that nobody between their two ends can read.
pub struct Secure;

/// The place of a connection, until it is dropped.
pub struct ConnectionPermit {
    _of_all: Share,
    _of_dashboard: Option<Share>,
}

/// The maximum number of connections to the dashboard. One address has at most a fifth: each connection
/// may occupy 128 KiB while a form arrives, and a browser needs six.
const MOST_AT_DASHBOARD: usize = 2_560;

/// How long a public page waits for the changes of other nodes.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(1);

/// The maximum number of running calls. The service refuses further calls at once.
pub const MOST_IN_FLIGHT: u64 = 4096;

/// Registers all routes.
pub fn configure(app: &mut web::ServiceConfig) {
    app.service(
        // The fast path answers most calls before the app sees them.
        web::resource("/backend/functions/{name}")
            .route(web::post().to(call))
            .default_service(web::to(refuse_method)),
    )
    .configure(endpoints::configure)
    .default_service(web::to(nothing_here));
}

async fn call(
    req: HttpRequest,
    edge: web::Data<Edge>,
    name: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    functions::call(&edge, name.into_inner(), req.head(), payload).await
}

async fn nothing_here(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if let Some(dashboard) = dashboard_of(req.head(), &edge) {
        return Heading::uncounted(req.head(), &edge).leads_to(dashboard);
    }
    reply::refuse(req.head(), &edge, Fault::NoRoute)
}

/// Where a person is led who opens the address of the service in a browser.
fn dashboard_of<'a>(head: &RequestHead, edge: &'a Edge) -> Option<&'a str> {
    let is_opened =
        head.method == Method::GET && head.uri.path() == "/" && html::is_wanted(head.headers());
    edge.platform.settings.dashboard_url.as_deref().filter(|_| is_opened)
}

/// The path exists, but not with this method.
async fn refuse_method(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    reply::refuse(req.head(), &edge, Fault::Method(req.method().to_string()))
}

/// The origins that browsers may call from: with those that are configured, the dashboard, whose pages
/// send files.
fn origins(args: &ServeArgs) -> HashSet<String> {
    let mut origins: HashSet<String> = args.network.cors_origins.iter().cloned().collect();
    if !origins.is_empty()
        && let Ok(url) = args.network.dashboard_url()
    {
        origins.insert(url.origin().ascii_serialization());
    }
    origins
}
