//! `svc serve`: starts the server, and closes the store when the server stops.

use crate::{
    config::{ServeArgs, network::is_local},
    http::{
        self, ConnectionPermit, Edge, Shared,
        dashboard::Pages,
        fast_path,
        paced::Paced,
        proxy::{HalfClose, Watched},
    },
    process, secrets,
    stop::{Signals, Stop},
    telemetry,
    wiring::{self, Wired},
};
use actix::Addr;
use actix_http::{
    Extensions, HttpService, Protocol, Request, Response, body::BoxBody, error::DispatchError,
};
use actix_rt::{Arbiter, System, net::TcpStream};
use actix_server::{Server, ServerBuilder};
use actix_service::{ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::{App, dev::AppConfig, web};
use actors::{
    background::{
        fan_out::FanOut,
        instance_reconciler::{InstanceReconciler, Intervals},
        sweeper::Sweeper,
    },
    call::{platform::Platform, router::Router},
    runtime::guard::Guard,
};
use contract::Fault;
use futures_util::future::{join, try_join_all};
use rustix::net::Shutdown;
use std::{
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::oneshot;
use url::Url;

/// Arbiters that run the owners.
const ARBITERS: usize = 2;
/// How long running calls may take to end after the service stops, in seconds.
const STOP_WITHIN: u64 = 30;
/// How long the owners and the long calls may take to end after that.
const WORK_ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may take to send its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// How much of a connection is read before a handler takes it, in bytes. Forms are small, and their
/// senders wait for a person anyway.
const PIECE_OF_A_FORM: usize = 16 << 10;
/// The same for the service, to which large files come fast.
const PIECE: usize = 64 << 10;

/// How long the server keeps reading a connection after an early refusal. Closing it at once would
/// reset the connection, and a client that is still sending would never see the answer.
const LINGER: Duration = Duration::from_secs(5);
/// How long a connection may stay idle between two requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How the server ended.
enum Ended {
    /// A signal stopped it.
    Stopped,
    /// A full disk had broken the store, and there is room again.
    MayGoOn,
}

/// Runs the server until a signal stops it. If a full disk broke the store, it starts the program again
/// once there is room.
pub fn run(args: &ServeArgs) -> Result<(), String> {
    let logging = telemetry::start_logging(&args.log, args.log_format)?;
    let ended = System::new().block_on(serve(args));
    drop(logging);
    match ended? {
        Ended::Stopped => Ok(()),
        Ended::MayGoOn => Err(process::start_again()),
    }
}

async fn serve(args: &ServeArgs) -> Result<Ended, String> {
    let owners: Vec<Arbiter> = (0..ARBITERS).map(|_| Arbiter::new()).collect();
    let handles: Vec<_> = owners.iter().map(Arbiter::handle).collect();
    let Wired { platform, vault, dumps, folders, first_start_token } =
        wiring::start(args, &handles).await?;
    start_background(args, &platform);
    let shared = Arc::new(shared(args)?);
    let workers = args
        .network
        .workers
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, std::num::NonZero::get));
    let long_calls = LongCalls::start(&platform, workers.div_ceil(2)).await?;
    let (app_platform, app_shared) = (platform.clone(), shared.clone());
    // The state of one worker, with a router of its own.
    let edge = move |router: Router| {
        let name = format!("router-{}", app_shared.requests.fetch_add(1, Relaxed));
        Edge {
            platform: app_platform.clone(),
            router: start_router(&app_platform, &name, router),
            vault: vault.clone(),
            dumps: dumps.clone(),
            folders: folders.clone(),
            shared: app_shared.clone(),
        }
    };
    let listener = |option, address, piece, connect: Connect| {
        let shared = shared.clone();
        Listener { option, address, piece, connect, workers, shared }
    };
    let (to_pages, to_calls) = (args.network.dashboard_listen, args.network.listen);
    let to_pages =
        listener("--dashboard-listen", to_pages, PIECE_OF_A_FORM, Shared::connect_to_dashboard);
    let pages = serve_pages(args, &platform, edge.clone(), to_pages)?;
    let to_calls = listener("--listen", to_calls, PIECE, Shared::connect);
    let calls = serve_calls(&platform, edge, long_calls.routers, to_calls)?;
    let (stop_pages, stop_calls) = (pages.handle(), calls.handle());
    actix_rt::spawn(pages);
    let mut calls = actix_rt::spawn(calls);
    let signals = Signals::hear()?;
    announce(args, &platform.settings.application_id, first_start_token.as_deref())?;
    let why = tokio::select! {
        why = signals.reason_to_stop(&platform) => Ok(why),
        failed = &mut calls => Err(format!("the server ended by itself: {failed:?}")),
    };
    platform.world.stop();
    let is_graceful = !matches!(why, Ok(Stop::AtOnce));
    join(stop_calls.stop(is_graceful), stop_pages.stop(is_graceful)).await;
    tracing::info!("stopping: closing the store");
    end(owners.into_iter().chain(long_calls.threads).collect(), &platform).await;
    platform.world.store.raw().close();
    why.map(|why| if matches!(why, Stop::ToGoOn) { Ended::MayGoOn } else { Ended::Stopped })
}

/// Starts the work that no call asks for.
fn start_background(args: &ServeArgs, platform: &Platform) {
    Sweeper::start(platform.clone());
    FanOut::start(platform.world.clone());
    let round = Duration::from_secs(args.hosting.watch_interval.max(1));
    let intervals = Intervals { round, ..Intervals::default() };
    InstanceReconciler::start(platform.world.clone(), intervals);
}

/// Serves the dashboard.
fn serve_pages(
    args: &ServeArgs,
    platform: &Platform,
    edge: impl Fn(Router) -> Edge + Send + Clone + 'static,
    listener: Listener,
) -> Result<Server, String> {
    let (url, api_url) = (args.network.dashboard_url()?, args.network.api_url());
    let settings = dashboard::Settings {
        keeps_sessions: url.scheme() == "https" || is_local(&url),
        is_only_here: Url::parse(&api_url).is_ok_and(|url| is_local(&url)),
        url,
        api_url,
        application_id: platform.settings.application_id.clone(),
        sends_mail: args.messages.mail_url.is_some(),
        registration: platform.world.ports.site.registration,
    };
    let (platform, listen) = (platform.clone(), args.network.listen);
    let app = move || {
        // Pages have workers of their own, and most show a list.
        let edge = edge(Router::new(platform.clone()));
        let settings = settings.clone();
        let app = App::new().configure(move |app| match Pages::new(edge, listen) {
            Ok(service) => dashboard::configure(Rc::new(service), settings, app),
            Err(e) => tracing::error!(error = %e, "the dashboard has no client for files"),
        });
        map_config(app, |()| AppConfig::default())
    };
    listener.serve(Server::build().disable_signals(), app)
}

/// Serves functions and endpoints.
fn serve_calls(
    platform: &Platform,
    edge: impl Fn(Router) -> Edge + Send + Clone + 'static,
    long_calls: Vec<Addr<Router>>,
    listener: Listener,
) -> Result<Server, String> {
    let (platform, begun) = (platform.clone(), Arc::new(AtomicUsize::new(0)));
    let app = move || {
        let turn = begun.fetch_add(1, Relaxed);
        let to = long_calls.get(turn % long_calls.len().max(1)).cloned().map(Addr::recipient);
        let edge = edge(Router::leaving_long_calls(platform.clone(), to));
        let app = App::new().app_data(web::Data::new(edge.clone())).configure(http::configure);
        fast_path::before(edge, map_config(app, |()| AppConfig::default()))
    };
    listener.serve(Server::build().disable_signals(), app)
}

/// Ends threads and the work on them. What is dropped with it ends too, such as the programs that it runs.
async fn end(threads: Vec<Arbiter>, platform: &Platform) {
    let (tell, ended) = oneshot::channel();
    std::thread::spawn(move || {
        for thread in &threads {
            thread.stop();
        }
        for thread in threads {
            let _ = thread.join();
        }
        let _ = tell.send(());
    });
    if platform.world.ports.clock.limit(WORK_ENDS_WITHIN, ended).await.is_none() {
        tracing::warn!("some work did not end in time, and ends with the process");
    }
}

/// Starts a router on this thread.
fn start_router(platform: &Platform, name: &str, router: Router) -> Addr<Router> {
    let clock = platform.world.ports.clock.clone();
    let registry = &platform.world.registry;
    let health = registry.add("router", Some(name), http::MOST_IN_FLIGHT, clock.now());
    Guard::start(router, Default::default(), health, clock)
}

/// The routers of long calls, each on a thread of its own.
struct LongCalls {
    threads: Vec<Arbiter>,
    routers: Vec<Addr<Router>>,
}

impl LongCalls {
    async fn start(platform: &Platform, count: usize) -> Result<Self, String> {
        let threads: Vec<Arbiter> = (0..count).map(|_| Arbiter::new()).collect();
        let start = |thread| router_of_long_calls(thread, platform);
        let routers = try_join_all(threads.iter().map(start)).await?;
        Ok(LongCalls { threads, routers })
    }
}

/// Starts a router of long calls on this thread.
async fn router_of_long_calls(
    thread: &Arbiter,
    platform: &Platform,
) -> Result<Addr<Router>, String> {
    let (tell, told) = oneshot::channel();
    let platform = platform.clone();
    thread.spawn_fn(move || {
        process::work_after_others();
        let _ =
            tell.send(start_router(&platform, "router-long-calls", Router::new(platform.clone())));
    });
    told.await.map_err(|_| "the thread of long calls did not start".into())
}

type Connect = fn(&Shared, IpAddr) -> Result<ConnectionPermit, Fault>;

/// Where a server listens, and what it shares with the others of this process.
struct Listener {
    /// The option that sets the address.
    option: &'static str,
    address: SocketAddr,
    /// See [`Paced`].
    piece: usize,
    /// Takes the place of a connection.
    connect: Connect,
    workers: usize,
    shared: Arc<Shared>,
}

impl Listener {
    /// Accepts connections and serves the app on them. `actix_web::HttpServer` offers no hook for the
    /// fast path and for [`Watched`] connections.
    fn serve<F>(
        self,
        server: ServerBuilder,
        app: impl Fn() -> F + Send + Clone + 'static,
    ) -> Result<Server, String>
    where
        F: ServiceFactory<
                Request,
                Config = (),
                Response: Into<Response<BoxBody>> + 'static,
                Error = actix_web::Error,
                InitError = (),
            > + 'static,
    {
        let Listener { option, address, piece, connect, workers, shared } = self;
        let server = server.workers(workers).shutdown_timeout(STOP_WITHIN);
        let stopping = server.graceful_shutdown_signal();
        let service = move || {
            let (shared, stopping) = (shared.clone(), stopping.clone());
            let accept = fn_service(move |io: TcpStream| async move {
                let _ = io.set_nodelay(true);
                let peer = io.peer_addr().ok();
                let io = Watched::new(Paced::new(io, piece));
                Ok::<_, DispatchError>((io, Protocol::Http1, peer))
            });
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stopping = stopping.clone();
                    async move { stopping.notified().await }
                })
                .on_connect_ext(move |io: &Watched<Paced<TcpStream>>, data: &mut Extensions| {
                    let peer = io.io().io().peer_addr().map(|peer| connect(&shared, peer.ip()));
                    match peer {
                        Ok(Ok(share)) => drop(data.insert(share)),
                        // There are too many connections, or the client has already disconnected.
                        Ok(Err(_)) | Err(_) => {
                            let _ = rustix::net::shutdown(io.io().io(), Shutdown::Both);
                        }
                    }
                    data.insert::<HalfClose>(io.half_close().clone());
                })
                .keep_alive(KEEP_ALIVE)
                .client_request_timeout(HEADERS_WITHIN)
                .client_disconnect_timeout(LINGER)
                .local_addr(address);
            let http: HttpService<_, _, BoxBody, _, _> = http.finish(app());
            accept.and_then(http)
        };
        let cannot =
            |e| format!("cannot listen on {address}: {e}; choose another address with {option}");
        Ok(server.bind("http", address, service).map_err(cannot)?.run())
    }
}

fn shared(args: &ServeArgs) -> Result<Shared, String> {
    Shared::new(args, process::room_for_connections())
}

/// Tells the operator what to do next.
#[allow(clippy::print_stdout, reason = "it is for the person at the terminal, not for the log")]
fn announce(
    args: &ServeArgs,
    application_id: &str,
    first_start_token: Option<&str>,
) -> Result<(), String> {
    let (api_url, dashboard) = (args.network.api_url(), args.network.dashboard_url()?);
    let dashboard = dashboard.as_str().trim_end_matches('/');
    println!("svc {} is ready", env!("CARGO_PKG_VERSION"));
    println!("  service         {api_url}");
    println!("  dashboard       {dashboard}");
    println!("  functions       {api_url}/backend/functions/{{name}}");
    println!("  document        {api_url}/openapi.json");
    println!("  application id  {application_id}");
    println!("  keys            {}", secrets::keys_path(&args.storage.data).display());
    if let Some(token) = first_start_token {
        println!("\nThis server has no administrator yet. Open this link once, and become it:");
        println!("  {dashboard}/first-start?token={token}");
    }
    Ok(())
}
