//! What is answered before anything else when the service serves host names over TLS.

use super::{
    Edge, Secure,
    instances::{Way, target_of},
};
use actix_http::{Request, Response, body::BoxBody, header};
use actix_web::http::{Method, StatusCode};
use url::Url;

/// Where an authority of certificates asks for a proof (RFC 8555, section 8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// Shows a proof to an authority, on every host name. Sends the clients of host names that ask without TLS
/// to the same address with it.
pub fn answer(request: &Request, edge: &Edge) -> Option<Response<BoxBody>> {
    if !edge.shared.serves_tls || request.conn_data::<Secure>().is_some() {
        return None;
    }
    if let Some(token) = request.path().strip_prefix(CHALLENGES)
        && request.method() == Method::GET
        && let Some(proof) = edge.shared.proofs.answer_of(token)
    {
        let mut shown = Response::build(StatusCode::OK);
        shown.insert_header((header::CONTENT_TYPE, "application/octet-stream"));
        return Some(shown.body(proof).map_into_boxed_body());
    }
    let Way { scheme, host, .. } = Way::of(request, edge);
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    let site = &edge.platform.world.ports.site;
    let has_tls = site.own_hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
        || target_of(name, edge).is_some();
    if scheme == "https" || !has_tls {
        return None;
    }
    // Host names of instances have the port of the service.
    let mut to = Url::parse(&site.api_url).ok().filter(|url| url.scheme() == "https")?;
    to.set_host(Some(name)).ok()?;
    let path = request.uri().path_and_query().map_or("/", |all| all.as_str());
    let to = format!("{}{path}", to.origin().ascii_serialization());
    let mut moved = Response::build(StatusCode::PERMANENT_REDIRECT);
    moved.insert_header((header::LOCATION, to));
    Some(moved.body("").map_into_boxed_body())
}
