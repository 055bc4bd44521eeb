//! Forwards `{api_url}/instances/{id}/…` to the live server of an instance.

use super::{
    Edge,
    proxy::{Forwarded, ProxyFault, Upstreams},
    reply, request,
};
use actix_http::{Request, RequestHead, Response, body::BoxBody, header};
use actors::kinds::hosting::instances::route;
use contract::{Fault, endpoint::instances::PREFIX};
use std::net::{Ipv4Addr, SocketAddr};

/// The instance id of a request, and the path and query for its server.
pub fn target(request: &Request) -> Option<(String, String)> {
    let asked = request.uri().path_and_query()?.as_str().strip_prefix(PREFIX)?;
    let end = asked.find(['/', '?']).unwrap_or(asked.len());
    let (id, rest) = asked.split_at_checked(end)?;
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    (!id.is_empty()).then(|| (id.to_owned(), rest))
}

/// Forwards a request. If the server takes no connection, another server may just have replaced it:
/// the route is looked up once more.
pub async fn pass(
    edge: &Edge,
    upstreams: &Upstreams,
    mut request: Request,
    id: &str,
    path: &str,
) -> Response<BoxBody> {
    let Way { client, scheme, host } = Way::of(request.head(), edge);
    let prefix = format!("{PREFIX}{id}");
    let facts = Forwarded { client: &client, scheme, host: &host, prefix: &prefix };
    let mut again = true;
    loop {
        let port = match route(&edge.platform.world, id) {
            Ok(route) => route.port,
            Err(fault) => return reply::refuse(request.head(), edge, fault).into(),
        };
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let fault = match upstreams.forward(&mut request, to, path, &facts).await {
            Ok(answer) => return answer,
            Err(ProxyFault::NotConnected(_)) if again => {
                again = false;
                continue;
            }
            Err(ProxyFault::NotConnected(_)) => Fault::Unavailable("the instance"),
            Err(ProxyFault::NoAnswer | ProxyFault::TooLate | ProxyFault::BadAnswer(_)) => {
                Fault::NoAnswer("the instance")
            }
            Err(ProxyFault::ClientTooSlow) => Fault::RequestTimeout,
            Err(e @ (ProxyFault::BadRequest(_) | ProxyFault::ClientGone)) => {
                Fault::Malformed(e.to_string())
            }
        };
        return reply::refuse(request.head(), edge, fault).into();
    }
}

/// How a request reached this service.
struct Way {
    client: String,
    scheme: &'static str,
    host: String,
}

impl Way {
    /// Trusts `X-Forwarded-Host` and `X-Forwarded-Proto` of trusted proxies only.
    fn of(head: &RequestHead, edge: &Edge) -> Way {
        let trusted = edge.shared.trusted_proxies.contains(&request::peer(head));
        // The nearest proxy wrote the last header line.
        let said = |name: header::HeaderName| {
            head.headers.get_all(name).filter(|_| trusted).last().and_then(|v| v.to_str().ok())
        };
        let asked = head.uri.authority().map(ToString::to_string);
        let named = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = said(header::X_FORWARDED_HOST).map(str::to_owned).or(asked);
        let https =
            said(header::X_FORWARDED_PROTO).is_some_and(|s| s.eq_ignore_ascii_case("https"));
        Way {
            client: request::origin(head, edge).address.to_string(),
            scheme: if https { "https" } else { "http" },
            host: host.or_else(|| named.map(str::to_owned)).unwrap_or_default(),
        }
    }
}
