//! What is answered before anything else when the service serves host names over TLS.

use super::{
    Edge, Secure,
    instances::{Way, target_of},
    reply,
};
use actix_http::{Request, Response, body::BoxBody, header};
use actix_web::http::{Method, StatusCode};
use actors::kinds::hosting::certificates::is_own;
use contract::{Fault, certificates::HostName};
use url::Url;

/// Where an authority of certificates asks for a proof (RFC 8555, section 8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// Shows a proof to an authority, on every host name. Sends the clients of host names that ask without TLS
/// to the same address with it. Over TLS, refuses a host name that leads to nothing: its certificate may outlive
/// what it led to.
pub fn answer(request: &Request, edge: &Edge) -> Option<Response<BoxBody>> {
    if !edge.shared.serves_tls {
        return None;
    }
    let is_secure = request.conn_data::<Secure>().is_some();
    if let Some(token) = request.path().strip_prefix(CHALLENGES)
        && !is_secure
        && request.method() == Method::GET
        && let Some(proof) = edge.shared.proofs.answer_of(token)
    {
        let mut shown = Response::build(StatusCode::OK);
        shown.insert_header((header::CONTENT_TYPE, "application/octet-stream"));
        return Some(shown.body(proof).map_into_boxed_body());
    }
    let Way { scheme, host, .. } = Way::of(request, edge);
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    let name = name.parse::<HostName>().ok();
    let name = name.as_ref().map(HostName::as_str).filter(|name| leads_somewhere(name, edge));
    match (is_secure, name) {
        (true, Some(_)) | (false, None) => None,
        (true, None) => {
            let fault = Fault::NotFound("service of this host name");
            Some(reply::refuse(request.head(), edge, fault).into())
        }
        (false, Some(_)) if scheme == "https" => None,
        (false, Some(name)) => to_tls(name, request, edge),
    }
}

fn leads_somewhere(name: &str, edge: &Edge) -> bool {
    is_own(&edge.platform.world.ports.site, name) || target_of(name, edge).is_some()
}

/// Sends a client to the same address with TLS. Not for ever: the operator may give it up again.
fn to_tls(name: &str, request: &Request, edge: &Edge) -> Option<Response<BoxBody>> {
    // Host names of instances have the port of the service.
    let service = Url::parse(&edge.platform.world.ports.site.api_url).ok()?;
    let port = service.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |all| all.as_str());
    let mut moved = Response::build(StatusCode::TEMPORARY_REDIRECT);
    moved.insert_header((header::LOCATION, format!("https://{name}{port}{path}")));
    Some(moved.body("").map_into_boxed_body())
}
