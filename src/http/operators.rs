//! Endpoints for operators: liveness, readiness, metrics and the OpenAPI document.

use super::{Edge, reply, request};
use crate::telemetry::{self, Gauges};
use actix_http::RequestHead;
use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use actors::{
    call::authn::same,
    functions::operators::overview::{clock_check, readiness},
    kinds::{
        commerce::checkouts::CheckoutIndex, events::webhooks::outbox::OutboxIndex,
        hosting::certificates::is_known,
    },
};
use bytes::Bytes;
use contract::{
    Fault,
    endpoint::{ReadyState, operators::Alive},
};
use serde::Deserialize;
use std::sync::LazyLock;

/// Whether an operator asks: from an address that may use the master key, or with the token for metrics.
fn is_operator(head: &RequestHead, edge: &Edge) -> bool {
    let origin = request::origin(head, edge);
    let known = &edge.platform.settings.master_key_addresses;
    if origin.is_known && known.contains(&origin.address.to_canonical()) {
        return true;
    }
    let sent = request::credentials(head, b"").unwrap_or_default().bearer;
    edge.shared.metrics_token.as_ref().zip(sent).is_some_and(|(token, sent)| same(token, &sent))
}

pub(super) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(Alive { status: "ok".into() })
}

/// Requests of operators and of their proxies are not counted, so that a monitor and a balancer may ask as often as
/// they like.
pub(super) async fn readyz(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if !is_operator(req.head(), &edge)
        && !is_own_proxy(req.head(), &edge)
        && let Some(refused) = reply::too_many(req.head(), &edge)
    {
        return refused;
    }
    let readiness = readiness(&edge.platform.world, edge.platform.world.ports.clock.now());
    let code = match readiness.status {
        ReadyState::Starting => StatusCode::SERVICE_UNAVAILABLE,
        ReadyState::Ready | ReadyState::Degraded => StatusCode::OK,
    };
    HttpResponse::build(code).json(readiness)
}

/// Whether a proxy of the operator asks for itself, and for none of its clients.
fn is_own_proxy(head: &RequestHead, edge: &Edge) -> bool {
    let peer = request::peer(head);
    let known = &edge.platform.settings.master_key_addresses;
    let is_proxy = known.contains(&peer) || edge.shared.trusted_proxies.contains(&peer);
    is_proxy && !request::is_forwarded(&head.headers)
}

/// Answers from the index: scanners make a proxy ask for any name.
pub(super) async fn certificate_question(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if !is_own_proxy(req.head(), &edge) {
        let why = "only a proxy itself asks this, from an address of SVC_MASTER_KEY_ADDRESSES or \
                   SVC_TRUSTED_PROXIES";
        return reply::refuse(req.head(), &edge, Fault::Unauthenticated(why.into()));
    }
    let asked = web::Query::<Domain>::from_query(req.query_string());
    let Ok(asked) = asked else {
        return reply::refuse(req.head(), &edge, Fault::invalid("domain", "is needed"));
    };
    match is_known(&edge.platform.world, &asked.domain) {
        Ok(true) => HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("yes\n"),
        Ok(false) => reply::refuse(req.head(), &edge, Fault::NotFound("service of this host name")),
        Err(fault) => reply::refuse(req.head(), &edge, fault),
    }
}

#[derive(Deserialize)]
struct Domain {
    domain: String,
}

pub(super) async fn metrics(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    if !is_operator(req.head(), &edge) {
        let why = "the metrics need the token of SVC_METRICS_TOKEN as `Authorization: Bearer`, or an \
                   address of SVC_MASTER_KEY_ADDRESSES";
        return reply::refuse(req.head(), &edge, Fault::Unauthenticated(why.into()));
    }
    let (mut actors, mut parked) = (0, 0);
    edge.platform.world.registry.each(|health| {
        actors += 1;
        parked += i64::from(health.has_given_up());
    });
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let store = &edge.platform.world.store;
    let engine = edge.platform.world.hosts.status();
    let gauges = Gauges {
        actors,
        parked,
        waiting: count(store.raw().waiting()),
        reads: count(store.reads()),
        store_bytes: count(store.raw().size_on_disk()),
        copy_age: count(store.raw().age_of_copy().as_secs()),
        buckets: count(edge.platform.authn.limiter.len() as u64),
        engine_up: i64::from(engine.observed_all && engine.unreachable.is_none()),
        orphans: count(engine.orphans),
        drift: count(engine.drift),
        clock_jumped: i64::from(!clock_check(&edge.platform.world).ok),
        events: count(store.count(&OutboxIndex::All).unwrap_or(0)),
        dropped: count(edge.platform.world.webhooks.dropped()),
        unsettled: count(store.count(&CheckoutIndex::Unsettled).unwrap_or(0)),
    };
    match edge.shared.figures.text(&gauges) {
        Ok(text) => HttpResponse::Ok().content_type(telemetry::TEXT).body(text),
        Err(e) => {
            tracing::error!(error = %e, "the figures cannot be written");
            HttpResponse::InternalServerError()
                .json(serde_json::json!({"code": 141, "error": "the figures cannot be written"}))
        }
    }
}

/// What editors know of `.svc/config.json`.
static CONFIG_SCHEMA: LazyLock<Bytes> =
    LazyLock::new(|| repository::config::schema().to_value().to_string().into());

pub(super) async fn config_schema() -> HttpResponse {
    HttpResponse::Ok().content_type("application/schema+json").body(CONFIG_SCHEMA.clone())
}

pub(super) async fn openapi(edge: web::Data<Edge>) -> HttpResponse {
    let api_url = &edge.platform.settings.api_url;
    let document = || contract::openapi::document(api_url, contract::GROUPS).to_string().into();
    let document = edge.shared.openapi.get_or_init(document).clone();
    HttpResponse::Ok().content_type("application/json").body(document)
}
