//! The pages for people that the service serves itself.

use super::{Edge, reply::Heading};
use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{self, HeaderMap},
};
use contract::Fault;
use dashboard::public::{NowherePage, Template, messages_of};

/// Whether whoever sends a request wants a page.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// The answer with a page.
pub(super) fn answer(page: &impl Template) -> HttpResponse {
    with(HttpResponse::Ok(), page)
}

/// Refuses the request for a page. A browser gets a page that says that its link leads to nothing.
pub(super) fn refuse(req: &HttpRequest, edge: &Edge, fault: &Fault) -> HttpResponse {
    match fault {
        Fault::NotFound(_) if is_wanted(req.headers()) => {
            with(HttpResponse::NotFound(), &NowherePage::new(messages_of(req.headers())))
        }
        fault => Heading::uncounted(req.head(), edge).fault(fault),
    }
}

fn with(mut response: HttpResponseBuilder, page: &impl Template) -> HttpResponse {
    let Ok(html) = page.render() else { return HttpResponse::InternalServerError().finish() };
    response
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::VARY, "accept, accept-language"))
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
        ))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .body(html)
}
