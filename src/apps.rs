//! The apps that the listeners serve: the service, and its dashboard.

use crate::{
    config::{ServeArgs, network::is_local},
    http::{self, Edge, Shared, by_host::by_host, dashboard::Pages, fast_path, served::Served},
    wiring::Wired,
};
use actix::Addr;
use actix_http::{Response, body::BoxBody};
use actix_service::map_config;
use actix_web::{
    App,
    dev::{AppConfig, ServiceResponse},
    web,
};
use actors::{
    call::{platform::Platform, router::Router},
    runtime::guard::Guard,
};
use std::{
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use url::Url;

/// Makes the apps of a worker. Each has a router of its own.
#[derive(Clone)]
pub struct Apps {
    wired: Arc<Wired>,
    shared: Arc<Shared>,
    dashboard: dashboard::Settings,
    /// Where the service listens, for the files that the dashboard sends.
    listen: SocketAddr,
    long_calls: Arc<[Addr<Router>]>,
    /// How many workers that answer calls were begun.
    begun: Arc<AtomicUsize>,
}

impl Apps {
    pub fn new(
        args: &ServeArgs,
        wired: Arc<Wired>,
        shared: Arc<Shared>,
        long_calls: Vec<Addr<Router>>,
    ) -> Result<Self, String> {
        let (url, api_url) = (args.network.dashboard_url()?, args.network.api_url());
        let dashboard = dashboard::Settings {
            keeps_sessions: url.scheme() == "https" || is_local(&url),
            is_only_here: Url::parse(&api_url).is_ok_and(|url| is_local(&url)),
            url,
            api_url,
            application_id: wired.platform.settings.application_id.clone(),
            sends_mail: args.messages.mail_url.is_some(),
            registration: wired.platform.world.ports.site.registration,
        };
        let (listen, long_calls, begun) = (args.network.listen, long_calls.into(), Arc::default());
        Ok(Apps { wired, shared, dashboard, listen, long_calls, begun })
    }

    /// The state of one worker, with a router of its own.
    fn edge(&self, router: Router) -> Edge {
        let name = format!("router-{}", self.shared.requests.fetch_add(1, Relaxed));
        Edge {
            platform: self.wired.platform.clone(),
            router: start_router(&self.wired.platform, &name, router),
            vault: self.wired.vault.clone(),
            dumps: self.wired.dumps.clone(),
            folders: self.wired.folders.clone(),
            shared: self.shared.clone(),
        }
    }

    /// The dashboard. Most of its pages show a list, so its workers are its own.
    pub fn pages(&self) -> impl Served<ServiceResponse> + use<> {
        self.pages_of(Router::new(self.wired.platform.clone()))
    }

    fn pages_of(&self, router: Router) -> impl Served<ServiceResponse> + use<> {
        let edge = self.edge(router);
        let (settings, listen) = (self.dashboard.clone(), self.listen);
        let app = App::new().configure(move |app| match Pages::new(edge, listen) {
            Ok(service) => dashboard::configure(Rc::new(service), settings, app),
            Err(e) => tracing::error!(error = %e, "the dashboard has no client for files"),
        });
        map_config(app, |()| AppConfig::default())
    }

    /// Functions, endpoints, and instances.
    pub fn calls(&self) -> impl Served<Response<BoxBody>> + use<> {
        self.calls_of(self.router_of(self.turn()))
    }

    fn calls_of(&self, router: Router) -> impl Served<Response<BoxBody>> + use<> {
        let edge = self.edge(router);
        let app = App::new().app_data(web::Data::new(edge.clone())).configure(http::configure);
        fast_path::before(edge, map_config(app, |()| AppConfig::default()))
    }

    /// Both, by the host name that is asked for. They share their workers, so the lists of pages are read elsewhere.
    pub fn all(&self) -> impl Served<Response<BoxBody>> + use<> {
        let dashboard = self.dashboard.url.host_str().unwrap_or_default();
        let turn = self.turn();
        let pages = self.pages_of(self.router_of(turn));
        by_host(self.shared.clone(), dashboard, pages, self.calls_of(self.router_of(turn)))
    }

    /// The number of a worker that answers calls.
    fn turn(&self) -> usize {
        self.begun.fetch_add(1, Relaxed)
    }

    /// A router of a worker that short calls need. The workers take the routers of long calls in turn.
    fn router_of(&self, turn: usize) -> Router {
        let long_calls = self.long_calls.get(turn % self.long_calls.len().max(1));
        Router::leaving_long_calls(
            self.wired.platform.clone(),
            long_calls.cloned().map(Addr::recipient),
        )
    }
}

/// Starts a router on this thread.
pub fn start_router(platform: &Platform, name: &str, router: Router) -> Addr<Router> {
    let clock = platform.world.ports.clock.clone();
    let registry = &platform.world.registry;
    let health = registry.add("router", Some(name), http::MOST_IN_FLIGHT, clock.now());
    Guard::start(router, Default::default(), health, clock)
}
