//! `svc serve`: starts the server, and closes the store when the server stops.

use crate::{
    apps::{Apps, start_router},
    config::ServeArgs,
    http::{Shared, tls::Tls},
    listen::{Connect, Listener, Plain},
    process, secrets,
    stop::{Signals, Stop},
    telemetry,
    wiring::{self, Wired},
};
use actix::Addr;
use actix_rt::{Arbiter, System};
use actix_server::Server;
use actors::{
    background::{
        fan_out::FanOut,
        instance_reconciler::{InstanceReconciler, Intervals},
        other_nodes::OtherNodes,
        sweeper::Sweeper,
    },
    call::{platform::Platform, router::Router},
};
use futures_util::future::{join_all, select_all, try_join_all};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Arbiters that run the owners.
const ARBITERS: usize = 2;
/// How long a balancer may take to see that a node is about to stop, and to send its calls to others. Until then the
/// node answers them.
const BALANCER_LEAVES_WITHIN: Duration = Duration::from_secs(3);
/// How long the owners and the long calls may take to end after that.
const WORK_ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How much of a connection is read before a handler takes it, in bytes. Forms are small, and their
/// senders wait for a person anyway.
const PIECE_OF_A_FORM: usize = 16 << 10;
/// The same for the service, to which large files come fast.
const PIECE: usize = 64 << 10;

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
    args.tls.check(&args.network)?;
    let owners: Vec<Arbiter> = (0..ARBITERS).map(|_| Arbiter::new()).collect();
    let handles: Vec<_> = owners.iter().map(Arbiter::handle).collect();
    let wired = Arc::new(wiring::start(args, &handles).await?);
    let platform = wired.platform.clone();
    start_background(args, &platform);
    let shared =
        Arc::new(Shared::new(args, process::room_for_connections(), wired.proofs.clone())?);
    let workers = args
        .network
        .workers
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, std::num::NonZero::get));
    let long_calls = LongCalls::start(&platform, workers.div_ceil(2)).await?;
    let apps = Apps::new(args, wired.clone(), shared.clone(), long_calls.routers)?;
    let servers = listen(args, &wired, &apps, &shared, workers)?;
    let stops: Vec<_> = servers.iter().map(Server::handle).collect();
    let ended = select_all(servers.into_iter().map(actix_rt::spawn));
    let signals = Signals::hear()?;
    announce(args, &platform.settings.application_id, wired.first_start_token.as_deref())?;
    let why = tokio::select! {
        why = signals.reason_to_stop(&platform) => Ok(why),
        (failed, ..) = ended => Err(format!("the server ended by itself: {failed:?}")),
    };
    platform.world.leave();
    let is_graceful = !matches!(why, Ok(Stop::AtOnce));
    if is_graceful && !platform.world.store.is_alone() {
        platform.world.ports.clock.sleep(BALANCER_LEAVES_WITHIN).await;
    }
    platform.world.stop();
    join_all(stops.iter().map(|server| server.stop(is_graceful))).await;
    tracing::info!("stopping: closing the store");
    end(owners.into_iter().chain(long_calls.threads).collect(), &platform).await;
    platform.world.store.raw().close();
    why.map(|why| if matches!(why, Stop::ToGoOn) { Ended::MayGoOn } else { Ended::Stopped })
}

/// Starts the work that no call asks for.
fn start_background(args: &ServeArgs, platform: &Platform) {
    Sweeper::start(platform.clone());
    FanOut::start(platform.world.clone());
    OtherNodes::start(platform.clone());
    let round = Duration::from_secs(args.hosting.watch_interval.max(1));
    let intervals = Intervals { round, ..Intervals::default() };
    InstanceReconciler::start(platform.world.clone(), intervals);
}

/// Listens for people, for programs, and for both over TLS.
fn listen(
    args: &ServeArgs,
    wired: &Wired,
    apps: &Apps,
    shared: &Arc<Shared>,
    workers: usize,
) -> Result<Vec<Server>, String> {
    let listener = |option, address, piece, connect: Connect| {
        let (handshake, shared) = (Plain, shared.clone());
        Listener { option, address, piece, connect, handshake, workers, shared }
    };
    let server = || Server::build().disable_signals();
    let (to_pages, to_calls) = (args.network.dashboard_listen, args.network.listen);
    let to_pages =
        listener("--dashboard-listen", to_pages, PIECE_OF_A_FORM, Shared::connect_to_dashboard);
    let to_calls = listener("--listen", to_calls, PIECE, Shared::connect);
    let (pages, calls) = (apps.clone(), apps.clone());
    let mut servers = vec![
        to_pages.serve(server(), move || pages.pages())?,
        to_calls.serve(server(), move || calls.calls())?,
    ];
    if let Some(address) = args.tls.https_listen {
        let tls = Tls::new(wired.platform.world.clone(), wired.proofs.clone())?;
        let plain = listener("--https-listen", address, PIECE, Shared::connect);
        let to_all = plain.with(Arc::new(tls));
        let all = apps.clone();
        servers.push(to_all.serve(server(), move || all.all())?);
    }
    Ok(servers)
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
