//! Opening an upload, and finalizing it.

use super::{
    Edge, functions,
    reply::{self, Heading},
    request,
};
use actix_http::RequestHead;
use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use actors::{
    call::{
        authn::{Counting, Credentials},
        context::Call,
        idempotency::ReplayKey,
        rate_limit::Allowance,
    },
    kinds::artifacts::endpoints::Made,
};
use contract::{
    ArtifactId, Fault,
    endpoint::{FinalizeRequest, UploadUrlRequest},
    params::Parameters,
};
use serde::Serialize;
use std::sync::Arc;

pub(super) async fn upload_url(
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    serve(
        req.head(),
        &edge,
        payload,
        "createUploadUrl",
        async |mut cx, request: UploadUrlRequest| edge.platform.open_upload(&mut cx, request).await,
    )
    .await
}

pub(super) async fn finalize(
    req: HttpRequest,
    edge: web::Data<Edge>,
    id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    serve(
        req.head(),
        &edge,
        payload,
        "finalizeArtifact",
        async |mut cx, request: FinalizeRequest| {
            let id: ArtifactId = id.parse().map_err(|_| Fault::NotFound("artifact"))?;
            edge.platform.finalize(&mut cx, id, request).await
        },
    )
    .await
}

/// Takes an endpoint's request through the gate, and answers it: 201 for what was made by it.
async fn serve<R: Parameters, T: Serialize>(
    head: &RequestHead,
    edge: &Edge,
    payload: web::Payload,
    endpoint: &'static str,
    work: impl AsyncFnOnce(Call, R) -> Result<(Made, T), Fault>,
) -> HttpResponse {
    let (_permit, body) = match functions::read(edge, head, payload).await {
        Ok(read) => read,
        Err(fault) => return reply::refuse(head, edge, fault),
    };
    let request_id = request::request_id(head, edge);
    let credentials = request::credentials(head, b"").unwrap_or_default();
    let (allowance, admitted) = admit(head, edge, &request_id, endpoint, &credentials);
    let done = async {
        let cx = admitted?;
        work(cx, contract::params::read(&body)?).await
    };
    let done = done.await;
    let heading =
        Heading { head, edge, request_id: request_id.clone(), allowance: Some(allowance) };
    match done {
        Ok((made, value)) => {
            tracing::info!(%request_id, function = endpoint, code = 0, "called");
            heading
                .value(if made == Made::Now { StatusCode::CREATED } else { StatusCode::OK }, &value)
        }
        Err(fault) => {
            edge.shared.figures.called(None, std::time::Duration::ZERO, Some(&fault));
            tracing::info!(%request_id, function = endpoint, code = fault.code(), error = %fault, "refused");
            heading.fault(&fault)
        }
    }
}

/// Counts a request to an endpoint and says who calls. Endpoints need no application id: their
/// credential says all.
pub(super) fn admit(
    head: &RequestHead,
    edge: &Edge,
    request_id: &Arc<str>,
    endpoint: &'static str,
    credentials: &Credentials,
) -> (Allowance, Result<Call, Fault>) {
    let platform = &edge.platform;
    let origin = request::origin(head, edge);
    let Counting { allowance, caller } = platform.gate.count(&platform.world, credentials, origin);
    if let Some(wait) = allowance.retry_after {
        return (allowance, Err(Fault::RateLimited { retry_after: wait.as_secs() + 1 }));
    }
    let call = caller.map(|caller| Call {
        function: endpoint,
        caller,
        address: origin.address,
        request_id: request_id.clone(),
        user_agent: request::user_agent(head),
        now: platform.world.ports.clock.now(),
        ancestry: Arc::default(),
        // Opening and finalizing are idempotent by themselves.
        replay: None::<ReplayKey>,
        secret: false,
    });
    (allowance, call)
}
