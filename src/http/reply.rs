//! Builds answers: status, body, and the headers that all answers carry.

use super::{Edge, cors, request};
use actix_http::RequestHead;
use actix_web::{
    HttpResponse,
    body::BoxBody,
    http::{
        Method, StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
};
use actors::call::rate_limit::Allowance;
use contract::{Fault, fault::Failure};
use serde::Serialize;
use std::sync::Arc;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// A year, in seconds.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The source of an answer's headers.
pub struct Heading<'a> {
    pub head: &'a RequestHead,
    pub edge: &'a Edge,
    pub request_id: Arc<str>,
    /// The calls left. `None` means those of the caller that the request's headers identify.
    pub allowance: Option<Allowance>,
}

impl<'a> Heading<'a> {
    /// For the answer to a request that does not count against the rate limit.
    pub fn uncounted(head: &'a RequestHead, edge: &'a Edge) -> Self {
        Heading { head, edge, request_id: request::request_id(head, edge), allowance: None }
    }

    /// The id of the request, and what is left of the rate limit.
    pub fn limits(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(4);
        self.put_limits_on(&mut headers);
        headers
    }

    fn put_limits_on(&self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            headers.insert(REQUEST_ID, id);
        }
        let allowance = self.allowance.unwrap_or_else(|| left(self.head, self.edge));
        let now = self.edge.platform.world.ports.clock.now();
        let reset = (now + allowance.full_in).as_millis().saturating_add(999).div_euclid(1000);
        headers.insert(LIMIT, allowance.limit.into());
        headers.insert(REMAINING, allowance.remaining.into());
        headers.insert(RESET, reset.into());
    }

    /// Adds the headers that all answers carry.
    fn put_on(&self, headers: &mut HeaderMap) {
        self.put_limits_on(headers);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        if self.edge.platform.settings.api_url.starts_with("https://") {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
        }
        cors::allow(self.head, self.edge, headers);
    }

    pub fn empty(&self, status: StatusCode) -> HttpResponse {
        let mut answer = HttpResponse::new(status);
        self.put_on(answer.headers_mut());
        answer
    }

    /// Leads a browser to an address of this installation.
    pub fn leads_to(&self, address: &str) -> HttpResponse {
        let mut answer = self.empty(StatusCode::SEE_OTHER);
        if let Ok(address) = HeaderValue::from_str(address) {
            answer.headers_mut().insert(header::LOCATION, address);
        }
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }

    pub fn json(&self, status: StatusCode, body: Vec<u8>) -> HttpResponse {
        let mut answer = HttpResponse::with_body(status, BoxBody::new(body));
        answer.headers_mut().insert(header::CONTENT_TYPE, JSON);
        self.put_on(answer.headers_mut());
        answer
    }

    pub fn value(&self, status: StatusCode, value: &impl Serialize) -> HttpResponse {
        match serde_json::to_vec(value) {
            Ok(body) => self.json(status, body),
            Err(_) => self.fault(&Fault::Uncertain),
        }
    }

    /// Wraps the reply's JSON into `{"result": …}`.
    pub fn result(&self, reply: &[u8]) -> HttpResponse {
        let mut body = Vec::with_capacity(reply.len() + 12);
        body.extend_from_slice(b"{\"result\":");
        body.extend_from_slice(reply);
        body.push(b'}');
        self.json(StatusCode::OK, body)
    }

    pub fn fault(&self, fault: &Fault) -> HttpResponse {
        let status =
            StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A `Failure` always serializes: it has only text, numbers and lists of text.
        let body = serde_json::to_vec(&Failure::new(fault, &self.request_id)).unwrap_or_default();
        let mut answer = self.json(status, body);
        if let Some(seconds) = fault.retry_after() {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

/// The calls left of the caller that the headers identify. The request is not counted.
pub fn left(head: &RequestHead, edge: &Edge) -> Allowance {
    let credentials = request::credentials(head, b"").unwrap_or_default();
    let platform = &edge.platform;
    platform.authn.peek(&platform.world, &credentials, request::origin(head, edge))
}

/// Adds the headers that all answers carry, if they are missing.
pub fn complete(head: &RequestHead, edge: &Edge, headers: &mut HeaderMap) {
    if !headers.contains_key(REQUEST_ID) {
        Heading::uncounted(head, edge).put_on(headers);
    }
}

impl Heading<'_> {
    /// Refuses a request whose body is not read, so that its connection cannot carry another request.
    pub fn fault_unread(&self, fault: &Fault) -> HttpResponse {
        let mut answer = self.fault(fault);
        answer.head_mut().set_connection_type(actix_http::ConnectionType::Close);
        answer
    }
}

/// Counts a request against the rate limit. Returns the answer to a request too many.
pub fn too_many(head: &RequestHead, edge: &Edge) -> Option<HttpResponse> {
    let credentials = request::credentials(head, b"").unwrap_or_default();
    let (platform, origin) = (&edge.platform, request::origin(head, edge));
    let allowance = platform.authn.admit(&platform.world, &credentials, origin, 1).allowance;
    let fault = allowance.check().err()?;
    let heading = Heading { allowance: Some(allowance), ..Heading::uncounted(head, edge) };
    Some(heading.fault(&fault))
}

/// Counts a request against the rate limit and refuses it. A preflight request is answered.
pub fn refuse(head: &RequestHead, edge: &Edge, fault: Fault) -> HttpResponse {
    if head.method == Method::OPTIONS {
        return cors::preflight(head, edge);
    }
    let credentials = request::credentials(head, b"").unwrap_or_default();
    let platform = &edge.platform;
    let origin = request::origin(head, edge);
    let admission = platform.authn.admit(&platform.world, &credentials, origin, 1);
    let fault = admission.allowance.check().err().unwrap_or(fault);
    edge.shared.figures.called(None, std::time::Duration::ZERO, Some(&fault));
    let heading = Heading::uncounted(head, edge);
    Heading { allowance: Some(admission.allowance), ..heading }.fault(&fault)
}
