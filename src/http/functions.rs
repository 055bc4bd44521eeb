//! `POST {base_url}/functions/{name}`.

use super::{
    Edge, MOST_IN_FLIGHT,
    reply::{self, Heading},
    request,
};
use actix_web::{HttpRequest, HttpResponse, web};
use actors::{
    limiter::Allowance,
    router::{Answered, Invoke},
};
use contract::Fault;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// A call as it came over HTTP, and its answer.
pub struct Exchange {
    /// The id of the request.
    pub request_id: Arc<str>,
    /// What came of it.
    pub reply: Result<Vec<u8>, Fault>,
    /// What the caller has left.
    pub allowance: Allowance,
}

/// Answers a function call.
pub async fn call(
    req: HttpRequest,
    edge: web::Data<Edge>,
    name: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    let body = match read(&req, payload).await {
        Ok(body) => body,
        Err(fault) => return reply::refuse(&req, &edge, fault),
    };
    if let Some(method) = request::method_override(&body).filter(|method| method != "POST") {
        return reply::refuse(&req, &edge, Fault::Method(method));
    }
    match invoke(&req, &edge, name.into_inner(), body).await {
        Ok(exchange) => {
            let heading = Heading {
                req: &req,
                edge: &edge,
                request_id: &exchange.request_id,
                allowance: Some(exchange.allowance),
            };
            match &exchange.reply {
                Ok(json) => heading.result(json),
                Err(fault) => heading.fault(fault),
            }
        }
        Err(fault) => reply::refuse(&req, &edge, fault),
    }
}

/// The body of a call, once its content type is known to be JSON.
pub async fn read(req: &HttpRequest, payload: web::Payload) -> Result<bytes::Bytes, Fault> {
    request::check_content_type(req)?;
    request::body(payload).await
}

/// Hands a call to this worker's router, and logs what came of it.
pub async fn invoke(
    req: &HttpRequest,
    edge: &Edge,
    function: String,
    body: bytes::Bytes,
) -> Result<Exchange, Fault> {
    let begun = Instant::now();
    let _place = Place::take(&edge.shared.in_flight)?;
    let request_id = request::request_id(req, edge);
    let invoke = Invoke {
        function,
        credentials: request::credentials(req, &body)?,
        body,
        address: request::address(req, edge),
        peer: request::peer(req),
        request_id: request_id.clone(),
        once: request::once(req)?,
        user_agent: request::user_agent(req),
    };
    // The router's own code panicked: it may have been done.
    let lost = |_| Answered {
        reply: Err(Fault::Uncertain),
        allowance: Allowance::unlimited(),
        function: None,
        user: None,
    };
    let answered = edge.router.send(invoke).await.unwrap_or_else(lost);
    let took = begun.elapsed();
    let fault = answered.reply.as_ref().err();
    edge.shared.figures.called(answered.function, took, fault);
    log(&request_id, &answered, took);
    Ok(Exchange { request_id, reply: answered.reply, allowance: answered.allowance })
}

fn log(request_id: &str, answered: &Answered, took: std::time::Duration) {
    let function = answered.function.unwrap_or("-");
    let caller = answered.user.map(|user| user.to_string());
    let caller = caller.as_deref().unwrap_or("-");
    let took_ms = took.as_secs_f64() * 1000.0;
    match &answered.reply {
        Ok(_) => tracing::info!(request_id, function, caller, code = 0, took_ms, "called"),
        Err(fault) if fault.status() >= 500 || matches!(fault, Fault::Uncertain) => {
            tracing::error!(request_id, function, caller, code = fault.code(), took_ms, error = %fault, "failed");
        }
        Err(fault) => {
            tracing::info!(request_id, function, caller, code = fault.code(), took_ms, error = %fault, "refused")
        }
    }
}

/// A place among the calls under way.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(in_flight: &'a AtomicUsize) -> Result<Self, Fault> {
        let place = Place(in_flight);
        if in_flight.fetch_add(1, Relaxed) >= MOST_IN_FLIGHT { Err(Fault::Busy) } else { Ok(place) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
