//! What a request says: who calls, from where, under which id, with which bytes.

use super::{Edge, LARGEST_BODY};
use actix_http::RequestHead;
use actix_web::{
    error::PayloadError,
    http::header::{self, HeaderName},
};
use actors::call::authn::Credentials;
use bytes::{Bytes, BytesMut};
use contract::{Fault, params};
use data_encoding::BASE64;
use futures_util::{Stream, StreamExt};
use serde_json::{Map, Value};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Once},
    time::Duration,
};

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Longer credentials and ids are not looked at.
const LONGEST_HEADER: usize = 256;

/// A proxy that nobody told us of is reported once.
static UNKNOWN_PROXY: Once = Once::new();

/// The names of a header; the first that a request has wins.
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

/// The id of a request: the client's own where it sent a plain one.
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

/// The address of the connection.
pub fn peer(head: &RequestHead) -> IpAddr {
    head.peer_addr.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip().to_canonical())
}

/// The client's address: the connection's, or what trusted proxies say. The header is read from
/// its end, where the nearest proxy wrote.
pub fn address(head: &RequestHead, edge: &Edge) -> IpAddr {
    let peer = peer(head);
    let trusted = &edge.shared.trusted_proxies;
    if trusted.is_empty() || !trusted.contains(&peer) {
        if head.headers.contains_key(header::X_FORWARDED_FOR) {
            UNKNOWN_PROXY.call_once(|| {
                tracing::warn!(%peer, "a request with X-Forwarded-For came from an address that is no trusted proxy; if a proxy of yours runs there, set SVC_TRUSTED_PROXIES: until then all its clients count as one address, for limits and for failed sign-ins");
            });
        }
        return peer;
    }
    // A proxy adds to the last line, or adds a line.
    let lines: Vec<_> = head.headers.get_all(header::X_FORWARDED_FOR).collect();
    let hops = lines.into_iter().rev().flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
    let hops = hops.map_while(|hop| hop.trim().parse::<IpAddr>().ok());
    hops.map(|hop| hop.to_canonical()).find(|hop| !trusted.contains(hop)).unwrap_or(peer)
}

/// The client's own id for a change that is to happen once. One that cannot be kept is refused: the
/// client counts on it.
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

/// What the client calls itself.
pub fn user_agent(head: &RequestHead) -> Option<String> {
    text(head, &header::USER_AGENT).map(|agent| agent.chars().take(200).collect())
}

/// What the request presents. A header wins over the body's reserved keys.
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

/// `Bearer` carries a deploy token; `Basic` an application id with a JavaScript key.
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

/// The method that a client library means: it posts everything, and says `_method` in the body.
pub fn method_override(body: &[u8]) -> Option<String> {
    if !params::has_reserved_keys(body) {
        return None;
    }
    params::object(body).ok()?.get("_method")?.as_str().map(str::to_ascii_uppercase)
}

/// Refuses content types that are not JSON in disguise.
pub fn check_content_type(head: &RequestHead) -> Result<(), Fault> {
    let Some(value) = head.headers.get(header::CONTENT_TYPE) else { return Ok(()) };
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
    if kind_fits && !foreign {
        Ok(())
    } else {
        Err(Fault::ContentType(value.chars().take(80).collect()))
    }
}

/// The whole body, within the limits of size and time.
pub async fn body(
    mut payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin,
) -> Result<Bytes, Fault> {
    let read = async {
        let Some(first) = payload.next().await else { return Ok(Bytes::new()) };
        let first = first.map_err(broken)?;
        let Some(second) = payload.next().await else { return bounded(first) };
        let mut whole = BytesMut::from(&bounded(first)?[..]);
        whole.extend_from_slice(&second.map_err(broken)?);
        while let Some(chunk) = payload.next().await {
            whole.extend_from_slice(&chunk.map_err(broken)?);
            if whole.len() > LARGEST_BODY {
                break;
            }
        }
        bounded(whole.freeze())
    };
    tokio::time::timeout(BODY_WITHIN, read).await.unwrap_or(Err(Fault::RequestTimeout))
}

fn bounded(body: Bytes) -> Result<Bytes, Fault> {
    if body.len() > LARGEST_BODY {
        Err(Fault::TooLarge { limit: LARGEST_BODY as u64 })
    } else {
        Ok(body)
    }
}

fn broken(e: PayloadError) -> Fault {
    Fault::Malformed(format!("the body did not arrive whole: {e}"))
}
