//! Checks each request before a page sees it, and completes each response.

use crate::{
    Site, cookies,
    form::Form,
    pages::{errors, sign_in},
    response::Refused,
    visitor::{ResponseHeaders, Visitor},
};
use actix_web::{
    FromRequest, HttpMessage, HttpResponse,
    body::MessageBody,
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{
        Method, StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use contract::Fault;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CROSS_ORIGIN_OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// The policy of a page that cannot be.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'");
/// Browsers then ask this host over https only.
const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// No inline script or style, no frame, nothing from elsewhere. Scripts send files to the service.
fn policy(site: &Site) -> Option<HeaderValue> {
    let service = url::Url::parse(&site.settings.api_url).ok()?.origin().ascii_serialization();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
         connect-src 'self' {service}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::from_str(&policy).ok()
}

pub async fn guard(
    req: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let note = cookies::note(req.request());
    let site = req.app_data::<Data<Site>>().cloned();
    let refused = match &site {
        Some(site) if is_local_address(&req, site) => return Ok(to_own_address(req, site)),
        Some(site) => refusal(&req, site),
        None => Some(Fault::Internal),
    };
    let mut response = match refused {
        Some(fault) => {
            let (req, _) = req.into_parts();
            let page = refusal_page(&Visitor::extract(&req).await?, fault).await;
            ServiceResponse::new(req, page)
        }
        None => with_refusal_page(next.call(req).await?).await?,
    };
    let is_page = response.headers().get(header::CONTENT_TYPE);
    let is_page = is_page.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if note.is_some() && is_page && response.status() != StatusCode::SEE_OTHER {
        // A cookie that stays shows its note twice.
        let _ = response.response_mut().add_cookie(&cookies::shown());
    }
    let policy = site.as_ref().and_then(|site| policy(site)).unwrap_or(NOTHING);
    let headers = response.request().extensions_mut().remove::<ResponseHeaders>();
    let headers = match (headers, &site) {
        (Some(ResponseHeaders(headers)), _) => headers,
        (None, Some(site)) => site.service.headers(response.request().head()),
        (None, None) => HeaderMap::new(),
    };
    for (name, value) in headers {
        response.headers_mut().insert(name, value);
    }
    complete(response.headers_mut(), policy);
    if site.as_ref().is_some_and(|site| site.settings.url.scheme() == "https") {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, A_YEAR);
    }
    Ok(response)
}

/// Whether a person entered `127.0.0.1` for `localhost`. Browsers keep the cookies of both apart.
fn is_local_address(req: &ServiceRequest, site: &Site) -> bool {
    let url = &site.settings.url;
    let local = |host: &str| url.port().is_some_and(|port| host == format!("127.0.0.1:{port}"));
    req.method() == Method::GET && url.host_str() == Some("localhost") && local(requested_host(req))
}

/// The host that the request names. A proxy passes it on; other headers are what anybody says.
fn requested_host(req: &ServiceRequest) -> &str {
    let host = req.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    host.unwrap_or_default()
}

/// Leads to the same page at the address of the site.
fn to_own_address(req: ServiceRequest, site: &Site) -> ServiceResponse {
    let mut to = site.settings.url.clone();
    to.set_path(req.path());
    to.set_query(req.uri().query());
    let to = (header::LOCATION, String::from(to));
    req.into_response(HttpResponse::TemporaryRedirect().insert_header(to).finish())
}

/// Why a request is not let through: another host's name leads here, as with a rebound name, or a
/// page of another site sends a form.
fn refusal(req: &ServiceRequest, site: &Site) -> Option<Fault> {
    if requested_host(req) != host_of(site) {
        return Some(Fault::Malformed(format!("the dashboard is at {}", site.settings.url)));
    }
    if req.method() == Method::GET || req.method() == Method::HEAD {
        return None;
    }
    let text = |name: HeaderName| req.headers().get(name).and_then(|value| value.to_str().ok());
    let own = site.settings.url.origin().ascii_serialization();
    let is_own = match (text(FETCH_SITE), text(header::ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => origin == own,
        // Every browser says where a form comes from.
        (None, None) => false,
    };
    (!is_own).then(|| Fault::Malformed("this form was sent by a page of another site".into()))
}

/// The host of the address, with its port unless it is the usual one.
fn host_of(site: &Site) -> String {
    let url = &site.settings.url;
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Makes a page of a refusal.
async fn with_refusal_page(
    response: ServiceResponse<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let error = response.response().error();
    let fault =
        error.and_then(|error| error.as_error::<Refused>()).map(|refused| refused.0.clone());
    let Some(fault) = fault else { return Ok(response.map_into_boxed_body()) };
    let req = response.request().clone();
    let visitor = Visitor::from_request(&req, &mut Payload::None).await?;
    let page = refusal_page(&visitor, fault).await;
    Ok(ServiceResponse::new(req, page))
}

async fn refusal_page(visitor: &Visitor, fault: Fault) -> HttpResponse {
    let made = match fault {
        Fault::Unauthenticated(_) => {
            let form = visitor.request().extensions().get::<Form>().cloned();
            sign_in::again(visitor, form).await
        }
        fault => errors::page_of(visitor, &fault).await,
    };
    // A page that cannot be made has no page of its own.
    made.unwrap_or_else(|_| HttpResponse::new(StatusCode::INTERNAL_SERVER_ERROR))
}

/// Puts the headers on a response that all of them carry.
fn complete(headers: &mut HeaderMap, policy: HeaderValue) {
    let text = HeaderValue::from_static;
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, text("nosniff"));
    headers.insert(header::REFERRER_POLICY, text("same-origin"));
    headers.insert(CROSS_ORIGIN_OPENER, SAME_ORIGIN);
    headers.insert(CROSS_ORIGIN_RESOURCE, SAME_ORIGIN);
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, text("no-store"));
    }
}
