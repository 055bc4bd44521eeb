//! Cross-origin calls. The service reads no cookies, so every origin may call it unless some
//! origins are configured. Errors carry the headers too: without them a browser hides the error
//! from the page.

use super::{Edge, reply::Heading};
use actix_http::RequestHead;
use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderMap, HeaderValue},
    },
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, OPTIONS");
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Content-Range, Content-Digest, Idempotency-Key, If-None-Match, If-Range, Range, Pragma, \
     Cache-Control, \
     X-Requested-With, X-Request-Id, \
     X-Backend-Application-Id, X-Backend-Session-Token, X-Backend-Javascript-Key, X-Backend-Client-Key, X-Backend-REST-API-Key, \
     X-Backend-Master-Key, X-Backend-Request-Id, \
     X-Parse-Application-Id, X-Parse-Session-Token, X-Parse-Javascript-Key, X-Parse-Client-Key, X-Parse-REST-API-Key, \
     X-Parse-Master-Key, X-Parse-Request-Id, X-Parse-Client-Version, X-Parse-Installation-Id, X-Parse-Revocable-Session, \
     X-Parse-Cloud-Context",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Upload-Offset, Upload-Length, \
     Upload-Complete, Accept-Ranges, Content-Range, Content-Disposition, ETag, Repr-Digest, X-Parse-Job-Status-Id, X-Parse-Push-Status-Id",
);
const ANY: HeaderValue = HeaderValue::from_static("*");
const ORIGIN: HeaderValue = HeaderValue::from_static("Origin");
const TWO_HOURS: HeaderValue = HeaderValue::from_static("7200");

/// Adds the headers that let a page of the origin read the answer.
pub fn allow(head: &RequestHead, edge: &Edge, headers: &mut HeaderMap) {
    headers.insert(header::VARY, ORIGIN);
    let origins = &edge.shared.origins;
    if origins.is_empty() {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    } else if let Some(origin) = head.headers.get(header::ORIGIN)
        && origin.to_str().is_ok_and(|text| origins.contains(text))
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

/// Answers a preflight request. It does not count against a rate limit.
pub fn preflight(head: &RequestHead, edge: &Edge) -> HttpResponse {
    let mut answer = Heading::uncounted(head, edge).empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, TWO_HOURS);
    answer
}
