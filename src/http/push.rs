//! Receives reports of pushes and runs from hosts of repositories.

use super::{
    Edge, functions,
    reply::{self, Heading},
};
use actix_http::RequestHead;
use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header::HeaderName},
    web,
};
use actors::functions::delivery::{builds::reports::take_report, repositories::push::Proof};
use contract::{AppId, Fault, repositories::PushReceived};
use data_encoding::HEXLOWER_PERMISSIVE;

const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
const SECRET: HeaderName = HeaderName::from_static("x-gitlab-token");

/// A refused report counts against the rate limit of its address.
pub(super) async fn receive(
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    match received(&req, &edge, payload).await {
        Ok(received) => {
            Heading::uncounted(req.head(), &edge).value(StatusCode::ACCEPTED, &received)
        }
        Err(fault) => reply::refuse(req.head(), &edge, fault),
    }
}

async fn received(
    req: &HttpRequest,
    edge: &Edge,
    payload: web::Payload,
) -> Result<PushReceived, Fault> {
    let app = req.match_info().get("appId").and_then(|id| id.parse::<AppId>().ok());
    let app = app.ok_or(Fault::NotFound("app"))?;
    let proof = proof(req.head()).ok_or_else(|| {
        Fault::Unauthenticated(format!(
            "the header {SIGNATURE} or {SECRET} is missing or not valid"
        ))
    })?;
    let (_permit, body) = functions::read(edge, req.head(), payload).await?;
    take_report(&edge.platform, app, &proof, &body).await
}

fn proof(head: &RequestHead) -> Option<Proof> {
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    match (text(SIGNATURE), text(SECRET)) {
        (Some(signature), _) => {
            let digits = signature.strip_prefix("sha256=")?;
            HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().map(Proof::Signature)
        }
        (None, secret) => secret.map(|secret| Proof::Secret(secret.to_owned())),
    }
}
