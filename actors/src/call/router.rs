//! The router: one on each HTTP worker takes each call through the [`super::pipeline`].
//!
//! Others are for lists, on threads of their own. A page of a list may take the reading of a thousand
//! records; on the thread of a worker, all other calls would wait for it.

use crate::{
    call::{
        pipeline::{self, Operations, Request, Response},
        rate_limit::Allowance,
    },
    platform::Platform,
};
use actix::prelude::*;
use contract::Fault;
use std::rc::Rc;

impl Message for Request {
    type Result = Response;
}

pub struct Router {
    platform: Rc<Platform>,
    operations: Rc<Operations>,
    lists: Option<Recipient<Request>>,
}

impl Router {
    /// A router that takes all calls itself.
    pub fn new(platform: Platform) -> Self {
        Router { platform: Rc::new(platform), operations: Rc::default(), lists: None }
    }

    /// A router that leaves lists to another one, if there is one.
    pub fn with_lists(platform: Platform, lists: Option<Recipient<Request>>) -> Self {
        Router { lists, ..Router::new(platform) }
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
        if let Some(lists) =
            self.lists.as_ref().filter(|_| self.operations.is_list(&request.target))
        {
            let page = lists.send(request);
            return Box::pin(async move { page.await.unwrap_or_else(|_| lost()) });
        }
        let (platform, operations) = (self.platform.clone(), self.operations.clone());
        Box::pin(async move { pipeline::run(&platform, &operations, request).await })
    }
}

/// The router of lists panicked. A read can be repeated.
fn lost() -> Response {
    Response {
        reply: Err(Fault::Internal),
        allowance: Allowance::unlimited(),
        operation: None,
        user: None,
    }
}
