//! The router: one on each HTTP worker takes each call through the [`super::pipeline`].
//!
//! Others are for long calls, on threads of their own. A page of a list may take the reading of a thousand
//! records, and a large body takes long to parse; on the thread of a worker, all other calls would wait.

use super::{
    pipeline::{self, Operations, Request, Response},
    platform::Platform,
    rate_limit::Allowance,
};
use actix::prelude::*;
use contract::Fault;
use std::{rc::Rc, sync::LazyLock};

/// All operations, which the routers share.
static OPERATIONS: LazyLock<Operations> = LazyLock::new(Operations::default);

impl Message for Request {
    type Result = Response;
}

pub struct Router {
    platform: Rc<Platform>,
    long_calls: Option<Recipient<Request>>,
}

impl Router {
    /// A router that takes all calls itself.
    pub fn new(platform: Platform) -> Self {
        Router { platform: Rc::new(platform), long_calls: None }
    }

    /// A router that leaves long calls to another one, if there is one.
    pub fn leaving_long_calls(platform: Platform, to: Option<Recipient<Request>>) -> Self {
        Router { long_calls: to, ..Router::new(platform) }
    }
}

impl Actor for Router {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        // The HTTP worker bounds the calls in flight.
        ctx.set_mailbox_capacity(usize::MAX >> 8);
    }
}

impl Supervised for Router {}

impl Handler<Request> for Router {
    type Result = ResponseFuture<Response>;
    fn handle(&mut self, request: Request, _: &mut Self::Context) -> Self::Result {
        let long_calls = self.long_calls.as_ref().filter(|_| OPERATIONS.takes_long(&request));
        if let Some(router) = long_calls {
            let done = router.send(request);
            return Box::pin(async move { done.await.unwrap_or_else(|_| lost()) });
        }
        let platform = self.platform.clone();
        Box::pin(async move { pipeline::run(&platform, &OPERATIONS, request).await })
    }
}

/// The router of long calls panicked.
fn lost() -> Response {
    Response {
        reply: Err(Fault::Internal),
        allowance: Allowance::unlimited(),
        operation: None,
        user: None,
    }
}
