//! The fast path for function calls and for requests to instances. They are nearly all requests and
//! need none of the app's routing, so they are answered before the app sees them.

use super::{
    Edge, functions,
    instances::{self, Asked},
    proxy::{Limits, Upstreams},
    reply, secure,
    served::Served,
};
use actix_http::{
    Request, Response,
    body::{BoxBody, MessageBody},
};
use actix_service::{Service, fn_factory};
use actix_web::{Error, dev::ServiceResponse, http::Method};
use futures_util::future::{LocalBoxFuture, ready};
use std::{
    rc::Rc,
    task::{Context, Poll},
};

const FUNCTIONS: &str = "/backend/functions/";

/// Answers function calls and forwards requests to instances. The app answers everything else.
struct FastPath<S> {
    edge: Rc<Edge>,
    upstreams: Upstreams,
    app: S,
}

/// Puts the fast path in front of an app.
pub fn before<B: MessageBody + 'static>(
    edge: Edge,
    app: impl Served<ServiceResponse<B>>,
) -> impl Served<Response<BoxBody>> {
    let (edge, app) = (Rc::new(edge), Rc::new(app));
    let upstreams = Upstreams::new(Limits::default());
    fn_factory(move || {
        let (edge, upstreams, app) = (edge.clone(), upstreams.clone(), app.clone());
        async move { Ok(FastPath { edge, upstreams, app: app.new_service(()).await? }) }
    })
}

/// The function name of a plain function call.
fn function(request: &Request) -> Option<String> {
    let name = request.path().strip_prefix(FUNCTIONS)?;
    // The app decodes and routes unusual paths.
    let is_plain = !name.is_empty() && !name.contains(['/', '%']);
    (is_plain && request.method() == Method::POST).then(|| name.to_owned())
}

impl<S> FastPath<S> {
    fn pass(
        &self,
        request: Request,
        asked: Asked,
    ) -> LocalBoxFuture<'static, Result<Response<BoxBody>, Error>> {
        let (edge, upstreams) = (self.edge.clone(), self.upstreams.clone());
        Box::pin(async move { Ok(instances::pass(&edge, &upstreams, request, &asked).await) })
    }
}

impl<S, B> Service<Request> for FastPath<S>
where
    S: Service<Request, Response = ServiceResponse<B>, Error = Error>,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    type Response = Response<BoxBody>;
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.app.poll_ready(cx)
    }

    fn call(&self, mut request: Request) -> Self::Future {
        if let Some(answer) = secure::answer(&request, &self.edge) {
            return Box::pin(ready(Ok(answer)));
        }
        if let Some(asked) = Asked::by_host(&request, &self.edge) {
            return self.pass(request, asked);
        }
        if let Some(name) = function(&request) {
            let edge = self.edge.clone();
            return Box::pin(async move {
                let payload = request.take_payload();
                Ok(functions::call(&edge, name, request.head(), payload).await.into())
            });
        }
        if let Some(asked) = Asked::by_path(&request) {
            return self.pass(request, asked);
        }
        let (edge, answer) = (self.edge.clone(), self.app.call(request));
        Box::pin(async move {
            let (request, mut answer) = answer.await?.into_parts();
            reply::complete(request.head(), &edge, answer.headers_mut());
            Ok(Response::from(answer).map_into_boxed_body())
        })
    }
}
