//! What a request says: who calls, from where, under which id, with which bytes.

use super::{Edge, LARGEST_BODY};
use actix_web::{HttpRequest, http::header, web};
use actors::gate::Credentials;
use base64::Engine;
use bytes::{Bytes, BytesMut};
use contract::{Fault, params};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Longer credentials and ids are not looked at.
const LONGEST_HEADER: usize = 256;

/// The id of a request: the client's own where it sent a plain one.
pub fn request_id(req: &HttpRequest, edge: &Edge) -> Arc<str> {
    match text(req, "x-request-id") {
        Some(id)
            if !id.is_empty() && id.len() <= 128 && id.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            id.into()
        }
        _ => {
            let n = edge.shared.requests.fetch_add(1, Relaxed);
            format!("{:08x}{n:012x}", edge.shared.process).into()
        }
    }
}

fn text<'a>(req: &'a HttpRequest, name: &str) -> Option<&'a str> {
    req.headers().get(name).and_then(|value| value.to_str().ok())
}

fn one_of<'a>(req: &'a HttpRequest, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| text(req, name)).filter(|value| value.len() <= LONGEST_HEADER)
}

/// The address of the connection.
pub fn peer(req: &HttpRequest) -> IpAddr {
    req.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip().to_canonical())
}

/// The client's address: the connection's, or what trusted proxies say. The header is read from
/// its end, where the nearest proxy wrote.
pub fn address(req: &HttpRequest, edge: &Edge) -> IpAddr {
    let peer = peer(req);
    let trusted = &edge.shared.trusted_proxies;
    if trusted.is_empty() || !trusted.contains(&peer) {
        return peer;
    }
    let forwarded = text(req, "x-forwarded-for").unwrap_or_default();
    let hops = forwarded.rsplit(',').map_while(|hop| hop.trim().parse::<IpAddr>().ok());
    hops.map(|hop| hop.to_canonical()).find(|hop| !trusted.contains(hop)).unwrap_or(peer)
}

/// The client's own id for a change that is to happen once.
pub fn once(req: &HttpRequest) -> Option<String> {
    one_of(req, &["x-backend-request-id", "x-parse-request-id", "idempotency-key"])
        .map(str::to_owned)
}

/// What the client calls itself.
pub fn user_agent(req: &HttpRequest) -> Option<String> {
    text(req, "user-agent").map(|agent| agent.chars().take(200).collect())
}

/// What the request presents. A header wins over the body's reserved keys.
pub fn credentials(req: &HttpRequest, body: &[u8]) -> Result<Credentials, Fault> {
    let header = |names: &[&str]| one_of(req, names).map(str::to_owned);
    let mut credentials = Credentials {
        application_id: header(&["x-backend-application-id", "x-parse-application-id"]),
        session_token: header(&["x-backend-session-token", "x-parse-session-token"]),
        javascript_key: header(&[
            "x-backend-javascript-key",
            "x-parse-javascript-key",
            "x-backend-client-key",
            "x-parse-client-key",
            "x-backend-rest-api-key",
            "x-parse-rest-api-key",
        ]),
        master_key: header(&["x-backend-master-key", "x-parse-master-key"]),
        bearer: None,
    };
    if let Some(authorization) = text(req, "authorization") {
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
        let decoded = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok();
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
pub fn check_content_type(req: &HttpRequest) -> Result<(), Fault> {
    let Some(value) = req.headers().get(header::CONTENT_TYPE) else { return Ok(()) };
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
pub async fn body(mut payload: web::Payload) -> Result<Bytes, Fault> {
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

fn broken(e: actix_web::error::PayloadError) -> Fault {
    Fault::Malformed(format!("the body did not arrive whole: {e}"))
}
