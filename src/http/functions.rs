//! `POST {base_url}/functions/{name}`.

use super::{
    Edge,
    reply::{self, Heading},
    request,
};
use actix_http::RequestHead;
use actix_web::{HttpResponse, error::PayloadError};
use actors::{
    call::{
        pipeline::{Request, Response, Target},
        rate_limit::Allowance,
    },
    runtime::permit::{Permit, Permits},
};
use bytes::Bytes;
use contract::{Fault, Reply};
use futures_util::Stream;
use std::{sync::Arc, time::Instant};

/// A call as it came over HTTP, and its answer.
pub struct Exchange {
    /// The id of the request.
    pub request_id: Arc<str>,
    pub reply: Result<Reply, Fault>,
    /// What the caller has left.
    pub allowance: Allowance,
}

/// Answers a call of the function of this name.
pub async fn call(
    edge: &Edge,
    name: String,
    head: &RequestHead,
    payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> HttpResponse {
    let done = async {
        let (_permit, body) = read(edge, head, payload).await?;
        match request::method_override(&body).filter(|method| method != "POST") {
            Some(method) => Err(Fault::Method(method)),
            None => invoke(head, edge, Target::Function(name), body).await,
        }
    };
    match done.await {
        Ok(Exchange { request_id, reply, allowance }) => {
            let heading =
                Heading { head, edge, request_id: &request_id, allowance: Some(allowance) };
            match &reply {
                Ok(reply) => heading.result(&reply.json),
                Err(fault) => heading.fault(fault),
            }
        }
        Err(fault) => reply::refuse(head, edge, fault),
    }
}

/// A permit for a call under way and then the body, once its content type is known to be JSON.
pub async fn read<'a>(
    edge: &'a Edge,
    head: &RequestHead,
    payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> Result<(Permit<&'a Permits>, Bytes), Fault> {
    let permit = Permit::take(&edge.shared.in_flight).ok_or(Fault::Busy)?;
    request::check_content_type(head)?;
    Ok((permit, request::body(payload).await?))
}

/// Hands a call to this worker's router, and logs what came of it.
pub async fn invoke(
    head: &RequestHead,
    edge: &Edge,
    target: Target,
    body: Bytes,
) -> Result<Exchange, Fault> {
    let begun = Instant::now();
    let request_id = request::request_id(head, edge);
    let request = Request {
        target,
        credentials: request::credentials(head, &body)?,
        body,
        address: request::address(head, edge),
        peer: request::peer(head),
        request_id: request_id.clone(),
        idempotency_key: request::idempotency_key(head)?,
        user_agent: request::user_agent(head),
    };
    // The router's own code panicked: it may have been done.
    let lost = |_| Response {
        reply: Err(Fault::Uncertain),
        allowance: Allowance::unlimited(),
        operation: None,
        user: None,
    };
    let response = edge.router.send(request).await.unwrap_or_else(lost);
    let took = begun.elapsed();
    let fault = response.reply.as_ref().err();
    edge.shared.figures.called(response.operation, took, fault);
    log(&request_id, &response, took);
    Ok(Exchange { request_id, reply: response.reply, allowance: response.allowance })
}

fn log(request_id: &str, response: &Response, took: std::time::Duration) {
    let function = response.operation.unwrap_or("-");
    let caller = response.user.map(|user| user.to_string());
    let caller = caller.as_deref().unwrap_or("-");
    let took_ms = took.as_secs_f64() * 1000.0;
    match &response.reply {
        Ok(_) => tracing::info!(request_id, function, caller, code = 0, took_ms, "called"),
        // Something behind the service that is away is no fault of its own.
        Err(fault @ (Fault::Unavailable(_) | Fault::NoAnswer(_) | Fault::Busy)) => {
            tracing::warn!(request_id, function, caller, code = fault.code(), took_ms, error = %fault, "failed");
        }
        Err(fault) if fault.status() >= 500 || matches!(fault, Fault::Uncertain) => {
            tracing::error!(request_id, function, caller, code = fault.code(), took_ms, error = %fault, "failed");
        }
        Err(fault) => {
            tracing::info!(request_id, function, caller, code = fault.code(), took_ms, error = %fault, "refused")
        }
    }
}
