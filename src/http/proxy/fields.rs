//! The header fields of requests and answers: which ones the proxy forwards, drops and sets.

use super::{Forwarded, Plan, ProxyFault, bodies::Upload};
use actix_http::{
    RequestHead, Response, StatusCode,
    header::{self, HeaderMap},
};
use hyper::{
    header as onwards,
    http::{response, uri::PathAndQuery},
};
use std::borrow::Cow;

/// How the end of a request's body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    /// At least one byte.
    Length(u64),
    Chunked,
}

impl Framing {
    /// Trusts the headers: the HTTP library has validated them.
    pub fn of(headers: &HeaderMap) -> Framing {
        let length = || headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok();
        if headers.contains_key(header::TRANSFER_ENCODING) {
            Framing::Chunked
        } else {
            length().filter(|length| *length > 0).map_or(Framing::None, Framing::Length)
        }
    }
}

/// The path and query for the upstream. A leading slash ensures that the path cannot name another
/// host.
pub fn target(path: &str) -> Result<PathAndQuery, ProxyFault> {
    let fit = path.starts_with('/').then(|| PathAndQuery::try_from(path).ok()).flatten();
    fit.ok_or(ProxyFault::BadRequest("this is not a path that HTTP allows"))
}

/// Whether the HTTP library treats the rest of the connection as another protocol.
pub fn names_websocket(headers: &HeaderMap) -> bool {
    let mut asked = headers.get_all(header::UPGRADE).filter_map(|value| value.to_str().ok());
    asked.any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket"))
}

/// Fields for the next hop only (RFC 9110, 7.6.1).
fn is_of_one_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Fields that the proxy sets, or that no client may set. `Expect` is dropped because the HTTP
/// library has already asked for the body.
fn is_ours(name: &str) -> bool {
    matches!(name, "content-length" | "expect" | "forwarded" | "host" | "x-real-ip")
        || name.starts_with("x-forwarded-")
}

/// Credentials of the platform. An instance may run anybody's code and must not see them.
fn is_credential(name: &str, value: &[u8]) -> bool {
    match name {
        "x-backend-master-key" | "x-backend-session-token" => true,
        "authorization" => {
            let (scheme, rest) = value.split_at_checked(6).unwrap_or_default();
            scheme.eq_ignore_ascii_case(b"bearer")
                && rest.trim_ascii_start().starts_with(b"svc_dt_")
        }
        _ => false,
    }
}

/// How the names of the dashboard's cookies begin. Browsers send them to every port of a host.
const COOKIES: &[u8] = b"__Host-svc-";

/// The cookies for an instance: without those of the dashboard. `None` if none are left.
fn cookies_onward(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let cookies = || value.split(|byte| *byte == b';');
    if !cookies().any(is_of_the_dashboard) {
        return Some(Cow::Borrowed(value));
    }
    let kept: Vec<&[u8]> = cookies().filter(|cookie| !is_of_the_dashboard(cookie)).collect();
    (!kept.is_empty()).then(|| Cow::Owned(kept.join(&b";"[..])))
}

fn is_of_the_dashboard(cookie: &[u8]) -> bool {
    // A browser sends a cookie without a name as its value.
    let cookie = cookie.trim_ascii_start();
    let cookie = cookie.strip_prefix(b"=").unwrap_or(cookie);
    cookie.get(..COOKIES.len()).is_some_and(|name| name.eq_ignore_ascii_case(COOKIES))
}

/// The names that `Connection` fields list. These fields, too, are for one hop only.
fn listed<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let names = values.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    names.filter(|name| !name.is_empty()).collect()
}

fn is_listed(listed: &[&[u8]], name: &str) -> bool {
    listed.iter().any(|listed| listed.eq_ignore_ascii_case(name.as_bytes()))
}

/// The request for the upstream.
pub fn onward(
    head: &RequestHead,
    plan: &Plan,
    target: &PathAndQuery,
    facts: &Forwarded<'_>,
    upload: Upload,
) -> Result<hyper::Request<Upload>, ProxyFault> {
    let unfit = || ProxyFault::BadRequest("this is not a header that HTTP allows");
    let mut onward = hyper::Request::new(upload);
    *onward.uri_mut() = target.clone().into();
    *onward.method_mut() =
        hyper::Method::from_bytes(head.method.as_str().as_bytes()).map_err(|_| unfit())?;
    let fields = onward.headers_mut();
    fields.reserve(head.headers.len() + OURS);
    let listed = listed(head.headers.get_all(header::CONNECTION).map(|value| value.as_bytes()));
    for (name, value) in &head.headers {
        let (name, value) = (name.as_str(), value.as_bytes());
        // Some servers read an underscore in a name as a hyphen, so the filters must do so too.
        let known = if name.contains('_') { &*name.replace('_', "-") } else { name };
        if is_of_one_hop(known)
            || is_ours(known)
            || is_credential(known, value)
            || is_listed(&listed, name)
        {
            continue;
        }
        let value =
            if known == "cookie" { cookies_onward(value) } else { Some(Cow::Borrowed(value)) };
        let Some(value) = value else { continue };
        let name = onwards::HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        let value = onwards::HeaderValue::from_bytes(&value).map_err(|_| unfit())?;
        fields.append(name, value);
    }
    let text = |text: &str| onwards::HeaderValue::from_str(text).map_err(|_| unfit());
    let host = text(facts.host)?;
    fields.insert(onwards::HOST, host.clone());
    fields.insert(FORWARDED_HOST, host);
    fields.insert(FORWARDED_FOR, text(facts.client)?);
    fields.insert(FORWARDED_PROTO, text(facts.scheme)?);
    if !facts.prefix.is_empty() {
        fields.insert(FORWARDED_PREFIX, text(facts.prefix)?);
    }
    if plan.upgrade {
        fields.insert(onwards::CONNECTION, onwards::HeaderValue::from_static("upgrade"));
        fields.insert(onwards::UPGRADE, onwards::HeaderValue::from_static("websocket"));
    }
    match plan.framing {
        Framing::Length(length) => {
            fields.insert(onwards::CONTENT_LENGTH, length.into());
        }
        Framing::Chunked => {
            let chunked = onwards::HeaderValue::from_static("chunked");
            fields.insert(onwards::TRANSFER_ENCODING, chunked);
        }
        // Servers expect a length on methods that allow a body.
        Framing::None if head.headers.contains_key(header::CONTENT_LENGTH) => {
            fields.insert(onwards::CONTENT_LENGTH, 0.into());
        }
        Framing::None => {}
    }
    Ok(onward)
}

/// The maximum number of fields that the proxy adds.
const OURS: usize = 8;
const FORWARDED_FOR: onwards::HeaderName = onwards::HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: onwards::HeaderName = onwards::HeaderName::from_static("x-forwarded-host");
const FORWARDED_PREFIX: onwards::HeaderName =
    onwards::HeaderName::from_static("x-forwarded-prefix");
const FORWARDED_PROTO: onwards::HeaderName = onwards::HeaderName::from_static("x-forwarded-proto");

/// The head of the answer for the client.
pub fn back(head: &response::Parts) -> Result<Response<()>, ProxyFault> {
    let unfit = || ProxyFault::BadAnswer("its headers cannot be passed on".into());
    let status = StatusCode::from_u16(head.status.as_u16()).map_err(|_| unfit())?;
    let mut answer = Response::with_body(status, ());
    let fields = answer.headers_mut();
    fields.reserve(head.headers.len() + 1);
    let connection = head.headers.get_all(onwards::CONNECTION);
    let listed = listed(connection.iter().map(|value| value.as_bytes()));
    // Only these two answers name a protocol for the connection.
    let says_upgrade = matches!(status.as_u16(), 101 | 426);
    // All other answers take their length from the body.
    let says_length = status == StatusCode::NOT_MODIFIED;
    for (name, value) in &head.headers {
        let known = name.as_str();
        let passes = match known {
            "upgrade" => says_upgrade,
            "content-length" => says_length,
            "set-cookie" => !is_of_the_dashboard(value.as_bytes()),
            // They lead clients past the service, or clear what is of the whole domain.
            "alt-svc" | "clear-site-data" => false,
            _ => !is_of_one_hop(known) && !is_listed(&listed, known),
        };
        if passes {
            let name = header::HeaderName::from_bytes(known.as_bytes()).map_err(|_| unfit())?;
            let value = header::HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unfit())?;
            fields.append(name, value);
        }
    }
    fields.append(header::VIA, header::HeaderValue::from_static("1.1 svc"));
    Ok(answer)
}

/// The length of an answer's body, or the length that it would have without `HEAD`.
pub fn length(headers: &hyper::HeaderMap) -> Option<u64> {
    if headers.contains_key(onwards::TRANSFER_ENCODING) {
        return None;
    }
    headers.get(onwards::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}
