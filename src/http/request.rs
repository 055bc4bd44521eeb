//! Reads the head of a request: the caller's credentials and address, the request id and the
//! content type.

use super::Edge;
use actix_http::RequestHead;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use actors::call::authn::{Credentials, Origin};
use contract::{Fault, params};
use data_encoding::BASE64;
use serde_json::{Map, Value};
use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Once},
};

/// The maximum length of a credential or an idempotency key.
const LONGEST_HEADER: usize = 256;

/// The log reports an unknown proxy once.
static UNKNOWN_PROXY: Once = Once::new();

/// The alternative names of a header. The first name in the request wins.
type Names<const N: usize> = [HeaderName; N];

const fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

static REQUEST_ID: HeaderName = name("x-request-id");
static IDEMPOTENCY_KEY: Names<3> =
    [name("x-backend-request-id"), name("x-parse-request-id"), name("idempotency-key")];
static APPLICATION_ID: Names<2> =
    [name("x-backend-application-id"), name("x-parse-application-id")];
static SESSION_TOKEN: Names<2> = [name("x-backend-session-token"), name("x-parse-session-token")];
static MASTER_KEY: Names<2> = [name("x-backend-master-key"), name("x-parse-master-key")];
static JAVASCRIPT_KEY: Names<6> = [
    name("x-backend-javascript-key"),
    name("x-parse-javascript-key"),
    name("x-backend-client-key"),
    name("x-parse-client-key"),
    name("x-backend-rest-api-key"),
    name("x-parse-rest-api-key"),
];

/// The client's request id if it is valid, else a new one.
pub fn request_id(head: &RequestHead, edge: &Edge) -> Arc<str> {
    match text(head, &REQUEST_ID) {
        Some(id)
            if !id.is_empty() && id.len() <= 128 && id.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            id.into()
        }
        _ => edge.shared.new_request_id().into(),
    }
}

fn text<'a>(head: &'a RequestHead, name: &HeaderName) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

fn one_of<'a>(head: &'a RequestHead, names: &[HeaderName]) -> Option<&'a str> {
    names.iter().find_map(|name| text(head, name)).filter(|value| value.len() <= LONGEST_HEADER)
}

/// The address of the peer of the connection.
pub fn peer(head: &RequestHead) -> IpAddr {
    head.peer_addr.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip().to_canonical())
}

/// Headers that proxies add to a forwarded request.
static FORWARDING: Names<4> =
    [header::X_FORWARDED_FOR, header::FORWARDED, header::VIA, name("x-real-ip")];

pub fn origin(head: &RequestHead, edge: &Edge) -> Origin {
    find_origin(&head.headers, peer(head), &edge.shared.trusted_proxies)
}

/// Whether a proxy forwarded a request.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING.iter().any(|name| headers.contains_key(name))
}

/// The client's address: the peer of the connection, or what trusted proxies report.
fn find_origin(headers: &HeaderMap, peer: IpAddr, trusted: &HashSet<IpAddr>) -> Origin {
    if !trusted.contains(&peer) {
        if headers.contains_key(header::X_FORWARDED_FOR) {
            UNKNOWN_PROXY.call_once(|| {
                tracing::warn!(%peer, "a request with X-Forwarded-For came from an address that is no trusted proxy; if a proxy of yours runs there, set SVC_TRUSTED_PROXIES: until then all its clients count as one address, for limits and for failed sign-ins");
            });
        }
        return Origin { address: peer, is_known: !is_forwarded(headers) };
    }
    // A proxy appends to the last line or adds a line: the nearest proxy wrote the end.
    let lines: Vec<_> = headers.get_all(header::X_FORWARDED_FOR).collect();
    let hops = lines.into_iter().rev().flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
    let mut furthest = None;
    for hop in hops.map(|hop| hop.trim().parse::<IpAddr>().map(|hop| hop.to_canonical())) {
        match hop {
            Ok(hop) if trusted.contains(&hop) => furthest = Some(hop),
            Ok(client) => return Origin { address: client, is_known: true },
            Err(_) => return Origin { address: peer, is_known: false },
        }
    }
    // The proxy itself is the client, or it does not name its client.
    Origin {
        address: furthest.unwrap_or(peer),
        is_known: furthest.is_some() || !is_forwarded(headers),
    }
}

/// The idempotency key of a change. An unusable key is refused, because the client relies on it.
pub fn idempotency_key(head: &RequestHead) -> Result<Option<String>, Fault> {
    let sent = IDEMPOTENCY_KEY.iter().find_map(|name| head.headers.get(name));
    match sent.map(|value| value.to_str()) {
        None | Some(Ok("")) => Ok(None),
        Some(Ok(id)) if id.len() <= LONGEST_HEADER => Ok(Some(id.to_owned())),
        Some(_) => Err(Fault::Malformed(format!(
            "X-Backend-Request-Id must be at most {LONGEST_HEADER} plain characters"
        ))),
    }
}

/// The first 200 characters of `User-Agent`.
pub fn user_agent(head: &RequestHead) -> Option<String> {
    text(head, &header::USER_AGENT).map(|agent| agent.chars().take(200).collect())
}

/// The credentials of a request. Headers win over the reserved keys of the body.
pub fn credentials(head: &RequestHead, body: &[u8]) -> Result<Credentials, Fault> {
    let header = |names: &[HeaderName]| one_of(head, names).map(str::to_owned);
    let mut credentials = Credentials {
        application_id: header(&APPLICATION_ID),
        session_token: header(&SESSION_TOKEN),
        javascript_key: header(&JAVASCRIPT_KEY),
        master_key: header(&MASTER_KEY),
        bearer: None,
    };
    if let Some(authorization) = text(head, &header::AUTHORIZATION) {
        read_authorization(authorization, &mut credentials);
    }
    if params::has_reserved_keys(body)
        && let Ok(fields) = params::object(body)
    {
        read_body(&fields, &mut credentials)?;
    }
    Ok(credentials)
}

/// `Bearer` carries a deploy token; `Basic` carries an application id and a JavaScript key.
fn read_authorization(authorization: &str, credentials: &mut Credentials) {
    let (scheme, rest) = authorization.split_once(' ').unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        credentials.bearer = Some(rest.trim().chars().take(LONGEST_HEADER).collect());
    } else if scheme.eq_ignore_ascii_case("basic") {
        let decoded = BASE64.decode(rest.trim().as_bytes()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let (application, key) = decoded.split_once(':').unwrap_or_default();
        credentials.application_id.get_or_insert_with(|| application.to_owned());
        if let Some(key) = key.strip_prefix("javascript-key=") {
            credentials.javascript_key.get_or_insert_with(|| key.to_owned());
        }
    }
}

fn read_body(fields: &Map<String, Value>, credentials: &mut Credentials) -> Result<(), Fault> {
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            Ok(Some(text.chars().take(LONGEST_HEADER).collect::<String>()))
        }
        Some(_) => Err(Fault::Unauthenticated(format!("{name} in the body must be text"))),
    };
    let session_token = text("_SessionToken")?;
    let javascript_key = text("_JavaScriptKey")?;
    let master_key = text("_MasterKey")?;
    let application_id = text("_ApplicationId")?;
    credentials.application_id = credentials.application_id.take().or(application_id);
    credentials.session_token = credentials.session_token.take().or(session_token);
    credentials.javascript_key = credentials.javascript_key.take().or(javascript_key);
    credentials.master_key = credentials.master_key.take().or(master_key);
    Ok(())
}

/// The method that a client library means: libraries send every request as `POST`, with `_method`
/// in the body.
pub fn method_override(body: &[u8]) -> Option<String> {
    if !params::has_reserved_keys(body) {
        return None;
    }
    params::object(body).ok()?.get("_method")?.as_str().map(str::to_ascii_uppercase)
}

/// The bodies that a content type allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON, under several content types.
    Json,
    /// The default content type of `curl -d`. The body may be JSON or a form.
    Form,
}

impl BodyFormat {
    /// Refuses a form.
    pub fn check(self, body: &[u8]) -> Result<(), Fault> {
        match self {
            BodyFormat::Form if !body.trim_ascii_start().starts_with(b"{") => {
                Err(Fault::ContentType(FORM.into()))
            }
            BodyFormat::Form | BodyFormat::Json => Ok(()),
        }
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Reads the content type. Refuses all that cannot be JSON in UTF-8.
pub fn content(head: &RequestHead) -> Result<BodyFormat, Fault> {
    let Some(value) = head.headers.get(header::CONTENT_TYPE) else { return Ok(BodyFormat::Json) };
    let value = value.to_str().unwrap_or("unreadable text");
    let mut parts = value.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let kind_fits =
        ["", "application/json", "text/plain"].iter().any(|known| kind.eq_ignore_ascii_case(known));
    let foreign = parts.filter_map(|part| part.split_once('=')).any(|(name, value)| {
        let value = value.trim_matches('"');
        name.eq_ignore_ascii_case("charset")
            && !value.eq_ignore_ascii_case("utf-8")
            && !value.eq_ignore_ascii_case("us-ascii")
    });
    match kind {
        _ if foreign => Err(Fault::ContentType(value.chars().take(80).collect())),
        _ if kind_fits => Ok(BodyFormat::Json),
        _ if kind.eq_ignore_ascii_case(FORM) => Ok(BodyFormat::Form),
        _ => Err(Fault::ContentType(value.chars().take(80).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The origin of a request from this peer with these `X-Forwarded-For` lines. 10.0.0.1 and
    /// 10.0.0.2 are trusted proxies.
    fn found(peer: &str, lines: &[&'static str]) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::X_FORWARDED_FOR, header::HeaderValue::from_static(line));
        }
        let trusted = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap()).into();
        let origin = find_origin(&headers, peer.parse().unwrap(), &trusted);
        (origin.address.to_string(), origin.is_known)
    }

    #[test]
    fn the_client_is_who_the_nearest_trusted_proxies_name() {
        let known = |address: &str| (address.to_owned(), true);
        let unknown = |address: &str| (address.to_owned(), false);
        assert_eq!(found("192.0.2.1", &[]), known("192.0.2.1"));
        assert_eq!(
            found("192.0.2.1", &["203.0.113.5"]),
            unknown("192.0.2.1"),
            "anybody can say so"
        );
        assert_eq!(found("10.0.0.1", &["203.0.113.5"]), known("203.0.113.5"));
        assert_eq!(found("10.0.0.1", &["127.0.0.1, 203.0.113.5"]), known("203.0.113.5"));
        assert_eq!(found("10.0.0.1", &["127.0.0.1", "203.0.113.5"]), known("203.0.113.5"));
        assert_eq!(found("10.0.0.1", &["203.0.113.5, 10.0.0.2"]), known("203.0.113.5"));
        assert_eq!(found("10.0.0.1", &["::ffff:203.0.113.5"]), known("203.0.113.5"));
        assert_eq!(found("10.0.0.1", &["203.0.113.5, unknown"]), unknown("10.0.0.1"));
        assert_eq!(found("10.0.0.1", &["10.0.0.2"]), known("10.0.0.2"), "a proxy calls for itself");
        assert_eq!(found("10.0.0.1", &[]), known("10.0.0.1"));
    }
}
