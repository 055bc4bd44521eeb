//! The HTTP face: function calls, the session routes of client libraries, artifact endpoints,
//! install pages, and what operators watch.

pub mod connection;
mod cors;
mod download;
mod endpoints;
pub mod front;
mod functions;
mod install;
mod instances;
mod operators;
mod parse_rest;
pub mod proxy;
mod reply;
mod request;
mod staging;
mod upload;

use crate::{
    adapters::{binaries::Vault, dumps::DumpFolder},
    telemetry::Figures,
};
use actix_web::{HttpRequest, HttpResponse, web};
use actors::{call::router::Router, platform::Platform, runtime::permit::Permits};
use contract::Fault;
use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// What every request needs. One on each worker; what is shared is behind `Arc`.
#[derive(Clone)]
pub struct Edge {
    pub platform: Platform,
    /// The router of this worker.
    pub router: actix::Addr<Router>,
    /// The bytes of artifacts.
    pub vault: Arc<Vault>,
    /// The bytes of backups.
    pub dumps: Arc<DumpFolder>,
    /// What is shared by the workers.
    pub shared: Arc<Shared>,
}

/// What the workers share.
pub struct Shared {
    /// The figures of `/metrics`.
    pub figures: Figures,
    /// The document at `/openapi.json`, once somebody asked for it: to make it takes megabytes.
    pub openapi: OnceLock<web::Bytes>,
    /// Origins that browsers may call from; empty: any.
    pub origins: HashSet<String>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: HashSet<IpAddr>,
    /// Calls under way on all workers.
    pub in_flight: Permits,
    /// Tells this process' request ids from others'.
    pub process: u32,
    /// Counts requests, for their ids.
    pub requests: AtomicU64,
    /// Places for uploads under way: each takes a thread that writes.
    pub uploads: tokio::sync::Semaphore,
    /// Set once the service stops taking calls.
    pub stopping: AtomicBool,
}

impl Shared {
    /// For a process that begins.
    pub fn new(origins: HashSet<String>, trusted_proxies: HashSet<IpAddr>) -> Result<Self, String> {
        let mut process = [0; 4];
        getrandom::fill(&mut process).map_err(|e| e.to_string())?;
        Ok(Shared {
            figures: Figures::default(),
            openapi: OnceLock::new(),
            origins,
            trusted_proxies,
            in_flight: Permits::new(MOST_IN_FLIGHT),
            process: u32::from_be_bytes(process),
            requests: AtomicU64::new(0),
            uploads: tokio::sync::Semaphore::new(MOST_UPLOADS),
            stopping: AtomicBool::new(false),
        })
    }

    /// An id for a request that brought none.
    pub fn new_request_id(&self) -> String {
        let n = self.requests.fetch_add(1, Relaxed);
        format!("{:08x}{n:012x}", self.process)
    }
}

/// Calls under way at a time. Past it, callers are turned away at once.
pub const MOST_IN_FLIGHT: u64 = 4096;
/// Uploads under way at a time. Past it, writers are turned away at once.
pub const MOST_UPLOADS: usize = 128;
/// The largest JSON body, in bytes.
pub const LARGEST_BODY: usize = 1 << 20;

/// What is served where.
pub fn configure(app: &mut web::ServiceConfig) {
    app.service(
        // The fast path has taken most calls already.
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
    reply::refuse(req.head(), &edge, Fault::NoRoute)
}

/// For an address that is served, but not with this method.
async fn refuse_method(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    reply::refuse(req.head(), &edge, Fault::Method(req.method().to_string()))
}
