//! One listener for the dashboard and the service: the host name that is asked for decides.

use super::{Shared, request, served::Served};
use actix_http::{Request, Response, body::BoxBody, header};
use actix_service::{Service, fn_factory};
use actix_web::{Error, dev::ServiceResponse, http::StatusCode};
use futures_util::future::{LocalBoxFuture, ready};
use std::{
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

/// Passes requests to the dashboard's host name to `pages`, and all others to `calls`.
struct ByHost<P, C> {
    shared: Arc<Shared>,
    dashboard: Rc<str>,
    pages: P,
    calls: C,
}

/// Puts two apps behind one listener.
pub fn by_host<P, C>(
    shared: Arc<Shared>,
    dashboard: &str,
    pages: P,
    calls: C,
) -> impl Served<Response<BoxBody>> + use<P, C>
where
    P: Served<ServiceResponse>,
    C: Served<Response<BoxBody>>,
{
    let (dashboard, pages, calls) = (Rc::from(dashboard), Rc::new(pages), Rc::new(calls));
    fn_factory(move || {
        let (dashboard, pages, calls): (Rc<str>, _, _) =
            (Rc::clone(&dashboard), pages.clone(), calls.clone());
        let shared = shared.clone();
        async move {
            let (pages, calls) = (pages.new_service(()).await?, calls.new_service(()).await?);
            Ok(ByHost { shared, dashboard, pages, calls })
        }
    })
}

impl<P, C> Service<Request> for ByHost<P, C>
where
    P: Service<Request, Response = ServiceResponse, Error = Error>,
    P::Future: 'static,
    C: Service<Request, Response = Response<BoxBody>, Error = Error>,
    C::Future: 'static,
{
    type Response = Response<BoxBody>;
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.pages.poll_ready(cx) {
            Poll::Ready(Ok(())) => self.calls.poll_ready(cx),
            other => other,
        }
    }

    fn call(&self, request: Request) -> Self::Future {
        if !is_to(&request, &self.dashboard) {
            return Box::pin(self.calls.call(request));
        }
        // The connection was not known to be one of the dashboard when it began.
        let Ok(place) = self.shared.place_at_dashboard(request::peer(request.head())) else {
            let full = Response::build(StatusCode::SERVICE_UNAVAILABLE)
                .body("There are too many connections to the dashboard.");
            return Box::pin(ready(Ok(full.map_into_boxed_body())));
        };
        let answer = self.pages.call(request);
        Box::pin(async move {
            let answer = Response::from(answer.await?).map_into_boxed_body();
            drop(place);
            Ok(answer)
        })
    }
}

/// Whether a request is to this host name.
fn is_to(request: &Request, name: &str) -> bool {
    let sent = request.head().headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let asked = request.uri().host();
    let host = sent.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    host.or(asked).is_some_and(|host| host.trim_end_matches('.').eq_ignore_ascii_case(name))
}
