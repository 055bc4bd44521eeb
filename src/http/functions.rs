//! `POST {base_url}/functions/{name}`.

use super::{
    Edge, body,
    budget::Share,
    reply::{self, Heading},
    request,
};
use actix_http::RequestHead;
use actix_web::{HttpResponse, error::PayloadError};
use actors::{
    call::{
        pipeline::{Counts, Request, Response, Target},
        rate_limit::Allowance,
    },
    runtime::permit::{Permit, Permits},
};
use bytes::Bytes;
use contract::{Fault, Reply};
use futures_util::Stream;
use std::{sync::Arc, time::Instant};

/// The answer to one call over HTTP.
pub struct Exchange {
    pub request_id: Arc<str>,
    pub reply: Result<Reply, Fault>,
    /// The calls that the caller has left.
    pub allowance: Allowance,
}

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
            let heading = Heading { head, edge, request_id, allowance: Some(allowance) };
            match &reply {
                Ok(reply) => heading.result(&reply.json),
                Err(fault) => heading.fault(fault),
            }
        }
        Err(fault) => reply::refuse(head, edge, fault),
    }
}

/// Checks the content type, reads the body and takes a permit. The permit comes last: a client that
/// sends slowly keeps no other call out.
pub async fn read<'a>(
    edge: &'a Edge,
    head: &RequestHead,
    payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> Result<(Admission<'a>, Bytes), Fault> {
    let content = request::content(head)?;
    let body = body::read(head, edge, payload).await?;
    content.check(&body.bytes)?;
    let permit = Permit::take(&edge.shared.in_flight).ok_or(Fault::Busy)?;
    Ok((Admission { _permit: permit, _room: body.room }, body.bytes))
}

/// Sends a call to this worker's router, and logs the outcome.
pub async fn invoke(
    head: &RequestHead,
    edge: &Edge,
    target: Target,
    body: Bytes,
) -> Result<Exchange, Fault> {
    let request = Request {
        target,
        credentials: request::credentials(head, &body)?,
        body,
        origin: request::origin(head, edge),
        request_id: request::request_id(head, edge),
        idempotency_key: request::idempotency_key(head)?,
        user_agent: request::user_agent(head),
        counts: Counts::Cost,
    };
    Ok(send(head, edge, request).await)
}

/// Sends a call whose parts are read to this worker's router, and logs the outcome.
pub async fn send(head: &RequestHead, edge: &Edge, request: Request) -> Exchange {
    let begun = Instant::now();
    let request_id = request.request_id.clone();
    // The router panicked: the call may have been executed.
    let lost = |_| Response {
        reply: Err(Fault::Uncertain),
        allowance: reply::left(head, edge),
        operation: None,
        user: None,
    };
    let response = edge.router.send(request).await.unwrap_or_else(lost);
    let took = begun.elapsed();
    let fault = response.reply.as_ref().err();
    edge.shared.figures.called(response.operation, took, fault);
    log(&request_id, &response, took);
    Exchange { request_id, reply: response.reply, allowance: response.allowance }
}

fn log(request_id: &str, response: &Response, took: std::time::Duration) {
    let function = response.operation.unwrap_or("-");
    // Made only if the line is wanted.
    let caller = || response.user.map_or_else(|| "-".to_owned(), |user| user.to_string());
    let took_ms = took.as_secs_f64() * 1000.0;
    match &response.reply {
        Ok(_) => {
            tracing::info!(request_id, function, caller = caller(), code = 0, took_ms, "called")
        }
        // An unreachable upstream is not an error of the service.
        Err(fault @ (Fault::Unavailable(_) | Fault::NoAnswer(_) | Fault::Busy | Fault::NoRoom)) => {
            tracing::warn!(request_id, function, caller = caller(), code = fault.code(), took_ms, error = %fault, "failed");
        }
        Err(fault) if fault.status() >= 500 || matches!(fault, Fault::Uncertain) => {
            tracing::error!(request_id, function, caller = caller(), code = fault.code(), took_ms, error = %fault, "failed");
        }
        Err(fault) => {
            tracing::info!(request_id, function, caller = caller(), code = fault.code(), took_ms, error = %fault, "refused")
        }
    }
}

/// What a running call holds: its permit, and its share of the memory for bodies.
pub struct Admission<'a> {
    _permit: Permit<&'a Permits>,
    _room: Option<Share>,
}
