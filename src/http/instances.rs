//! Forwards requests to the live server of an instance: those to its host name, and those to
//! `{api_url}/instances/{id}/…`.

use super::{
    Edge, Secure,
    confine::{confine, sandbox},
    proxy::{Forwarded, ProxyFault, Upstreams},
    reply, request,
};
use actix_http::{Request, Response, body::BoxBody, header};
use actors::kinds::hosting::{certificates, instances::route};
use contract::{Fault, endpoint::instances::PREFIX};

/// A request to an instance.
pub struct Asked {
    /// What [`route`] finds.
    target: String,
    /// The path and query for its server.
    path: String,
    /// What was taken from the path; empty for a host name.
    prefix: String,
}

impl Asked {
    /// A request to a host below the domain of instances, or to a domain of an app. Nothing else answers there.
    pub fn by_host(request: &Request, edge: &Edge) -> Option<Asked> {
        // A proxy that sets only `Host` passes on any other name that its client sent.
        let host = request.head().headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let by_host = host.and_then(|host| target_of(host, edge));
        let names_another = request.head().headers.contains_key(header::X_FORWARDED_HOST)
            || request.uri().authority().is_some();
        let by_another =
            || names_another.then(|| target_of(&Way::of(request, edge).host, edge)).flatten();
        let target = by_host.or_else(by_another)?;
        let path = request.uri().path_and_query().map_or("/", |all| all.as_str()).to_owned();
        Some(Asked { target, path, prefix: String::new() })
    }

    /// A request to a path of instances.
    pub fn by_path(request: &Request) -> Option<Asked> {
        let asked = request.uri().path_and_query()?.as_str().strip_prefix(PREFIX)?;
        let end = asked.find(['/', '?']).unwrap_or(asked.len());
        let (target, rest) = asked.split_at_checked(end)?;
        let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        let prefix = format!("{PREFIX}{target}");
        (!target.is_empty()).then(|| Asked { target: target.to_owned(), path, prefix })
    }
}

/// What a host leads to, if that is an instance. A failing store is told by what answers in its place.
pub fn target_of(host: &str, edge: &Edge) -> Option<String> {
    certificates::target_of(&edge.platform.world, host).ok().flatten()
}

/// Forwards a request. If there is no server, or if it takes no connection, another one may just have taken its place:
/// the route is looked up once more.
pub async fn pass(
    edge: &Edge,
    upstreams: &Upstreams,
    mut request: Request,
    asked: &Asked,
) -> Response<BoxBody> {
    let Way { client, scheme, host } = Way::of(&request, edge);
    let Asked { target, path, prefix } = asked;
    let facts = Forwarded { client: &client, scheme, host: &host, prefix };
    let site = &edge.platform.world.ports.site;
    let mut again = true;
    loop {
        let to = match route(&edge.platform.world, target) {
            Ok(route) => route.server,
            Err(_) if again && !edge.platform.world.store.is_alone() => {
                again = false;
                edge.catch_up().await;
                continue;
            }
            Err(fault) => return reply::refuse(request.head(), edge, fault).into(),
        };
        let fault = match upstreams.forward(&mut request, to, path, &facts).await {
            Ok(mut answer) => {
                confine(answer.headers_mut(), prefix);
                if !prefix.is_empty() && site.sandboxes_paths {
                    sandbox(answer.headers_mut(), site.instance_domain.is_some());
                }
                return answer;
            }
            Err(ProxyFault::NotConnected(_)) if again => {
                again = false;
                edge.catch_up().await;
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
pub struct Way {
    client: String,
    pub scheme: &'static str,
    /// What the client asked for, maybe with a port.
    pub host: String,
}

impl Way {
    /// Trusts `X-Forwarded-Host` and `X-Forwarded-Proto` of trusted proxies only.
    pub fn of(request: &Request, edge: &Edge) -> Way {
        let head = request.head();
        let trusted = edge.shared.trusted_proxies.contains(&request::peer(head));
        // The nearest proxy wrote the last header line.
        let said = |name: header::HeaderName| {
            head.headers.get_all(name).filter(|_| trusted).last().and_then(|v| v.to_str().ok())
        };
        let asked = head.uri.authority().map(ToString::to_string);
        let named = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = said(header::X_FORWARDED_HOST).map(str::to_owned).or(asked);
        let https = request.conn_data::<Secure>().is_some()
            || said(header::X_FORWARDED_PROTO).is_some_and(|s| s.eq_ignore_ascii_case("https"));
        Way {
            client: request::origin(head, edge).address.to_string(),
            scheme: if https { "https" } else { "http" },
            host: host.or_else(|| named.map(str::to_owned)).unwrap_or_default(),
        }
    }
}
