//! Every answer: its status, its body, and the headers that all answers carry.

use super::{Edge, cors, request};
use actix_http::RequestHead;
use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};
use actors::call::rate_limit::Allowance;
use contract::{Fault, fault::Failure};
use serde::Serialize;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What the headers of an answer say.
pub struct Heading<'a> {
    /// The head of the request.
    pub head: &'a RequestHead,
    pub edge: &'a Edge,
    /// The id of the request.
    pub request_id: &'a str,
    /// What the caller has left; `None` where the request was not counted.
    pub allowance: Option<Allowance>,
}

impl Heading<'_> {
    fn add(&self, answer: &mut HttpResponse) {
        let headers = answer.headers_mut();
        if let Ok(id) = HeaderValue::from_str(self.request_id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(allowance) = &self.allowance {
            let now = self.edge.platform.world.ports.clock.now();
            let reset = (now + allowance.full_in).as_millis().saturating_add(999).div_euclid(1000);
            headers.insert(LIMIT, allowance.limit.into());
            headers.insert(REMAINING, allowance.remaining.into());
            headers.insert(RESET, reset.into());
        }
        cors::allow(self.head, self.edge, headers);
    }

    /// An answer with this JSON.
    pub fn json(&self, status: StatusCode, body: Vec<u8>) -> HttpResponse {
        let mut answer = HttpResponse::with_body(status, actix_web::body::BoxBody::new(body));
        answer.headers_mut().insert(header::CONTENT_TYPE, JSON);
        self.add(&mut answer);
        answer
    }

    /// An answer with this value as JSON.
    pub fn value(&self, status: StatusCode, value: &impl Serialize) -> HttpResponse {
        match serde_json::to_vec(value) {
            Ok(body) => self.json(status, body),
            Err(_) => self.fault(&Fault::Uncertain),
        }
    }

    /// `{"result": …}` around the reply's JSON.
    pub fn result(&self, reply: &[u8]) -> HttpResponse {
        let mut body = Vec::with_capacity(reply.len() + 12);
        body.extend_from_slice(b"{\"result\":");
        body.extend_from_slice(reply);
        body.push(b'}');
        self.json(StatusCode::OK, body)
    }

    /// The answer for a fault.
    pub fn fault(&self, fault: &Fault) -> HttpResponse {
        let status =
            StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A `Failure` always serializes: text, numbers and lists of text.
        let body = serde_json::to_vec(&Failure::new(fault, self.request_id)).unwrap_or_default();
        let mut answer = self.json(status, body);
        if let Some(seconds) = fault.retry_after() {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

/// Counts a request and refuses it. A browser that asks before it calls is let through.
pub fn refuse(head: &RequestHead, edge: &Edge, fault: Fault) -> HttpResponse {
    if head.method == actix_web::http::Method::OPTIONS {
        return cors::preflight(head, edge);
    }
    let credentials = request::credentials(head, b"").unwrap_or_default();
    let admission = edge.platform.authn.admit(
        &edge.platform.world,
        &credentials,
        request::address(head, edge),
        request::peer(head),
    );
    let fault = admission.allowance.check().err().unwrap_or(fault);
    edge.shared.figures.called(None, std::time::Duration::ZERO, Some(&fault));
    let request_id = request::request_id(head, edge);
    Heading { head, edge, request_id: &request_id, allowance: Some(admission.allowance) }
        .fault(&fault)
}
