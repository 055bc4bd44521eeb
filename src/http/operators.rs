//! Endpoints for operators: liveness, readiness, metrics and the OpenAPI document.

use super::Edge;
use crate::telemetry::{self, Gauges};
use actix_web::{HttpResponse, http::StatusCode, web};
use actors::kinds::{checkouts::CheckoutIndex, webhooks::outbox::OutboxIndex};
use contract::{
    endpoint::{
        ActorsCheck, Checks, EngineCheck, Readiness, ReadyState, StoreCheck, operators::Alive,
    },
    operators::ActorState,
};

pub(super) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(Alive { status: "ok".into() })
}

/// The number of actors in memory, in total and by trouble.
#[derive(Default)]
struct Census {
    all: u64,
    restarting: u64,
    gave_up: u64,
    stuck: u64,
}

fn census(edge: &Edge) -> Census {
    let now = edge.platform.world.ports.clock.now();
    let mut census = Census::default();
    edge.platform.world.registry.each(|health| {
        census.all += 1;
        match health.state(now) {
            ActorState::Running => {}
            ActorState::Restarting => census.restarting += 1,
            ActorState::GaveUp => census.gave_up += 1,
            ActorState::Stuck => census.stuck += 1,
        }
    });
    census
}

pub(super) async fn readyz(edge: web::Data<Edge>) -> HttpResponse {
    let platform = &edge.platform;
    let flush = platform.world.store.raw().last_flush_ms();
    let census = census(&edge);
    let actors_ok = census.gave_up == 0 && census.stuck == 0;
    let engine = platform.world.engine_health.status();
    let status = match (&flush, actors_ok && engine.unreachable.is_none()) {
        _ if platform.world.is_stopping() || !engine.checked => ReadyState::Starting,
        (Err(_), _) => ReadyState::Starting,
        (Ok(_), true) => ReadyState::Ready,
        (Ok(_), false) => ReadyState::Degraded,
    };
    let readiness = Readiness {
        status,
        checks: Checks {
            store: StoreCheck { ok: flush.is_ok(), flush_ms: flush.ok().flatten() },
            actors: ActorsCheck {
                ok: actors_ok,
                restarting: census.restarting,
                gave_up: census.gave_up,
            },
            engine: EngineCheck {
                ok: engine.unreachable.is_none(),
                since: engine.unreachable.as_ref().map(|(since, _)| *since),
                // The engine's own error names paths of this machine: only the log has it.
                error: engine
                    .unreachable
                    .map(|_| "the container engine does not answer; the log says why".into()),
                orphans: engine.orphans,
            },
        },
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_ms: platform.world.ports.clock.now().since(platform.world.started_at).as_millis()
            as u64,
    };
    let code = if status == ReadyState::Starting {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    HttpResponse::build(code).json(readiness)
}

pub(super) async fn metrics(edge: web::Data<Edge>) -> HttpResponse {
    let census = census(&edge);
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let store = &edge.platform.world.store;
    let engine = edge.platform.world.engine_health.status();
    let gauges = Gauges {
        actors: count(census.all),
        parked: count(census.gave_up),
        waiting: count(store.raw().waiting()),
        store_bytes: count(store.raw().size_on_disk()),
        buckets: count(edge.platform.authn.limiter.len() as u64),
        engine_up: i64::from(engine.observed_all && engine.unreachable.is_none()),
        orphans: count(engine.orphans),
        drift: count(engine.drift),
        events: count(store.count(&OutboxIndex::All).unwrap_or(0)),
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

pub(super) async fn openapi(edge: web::Data<Edge>) -> HttpResponse {
    let api_url = &edge.platform.settings.api_url;
    let document = || contract::openapi::document(api_url, contract::GROUPS).to_string().into();
    let document = edge.shared.openapi.get_or_init(document).clone();
    HttpResponse::Ok().content_type("application/json").body(document)
}
