//! The router: one on each HTTP worker takes each call through the [`super::pipeline`].

use crate::{
    call::pipeline::{self, Operations, Request, Response},
    platform::Platform,
};
use actix::prelude::*;
use std::rc::Rc;

impl Message for Request {
    type Result = Response;
}

pub struct Router {
    platform: Rc<Platform>,
    operations: Rc<Operations>,
}

impl Router {
    pub fn new(platform: Platform) -> Self {
        Router { platform: Rc::new(platform), operations: Rc::default() }
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
        let (platform, operations) = (self.platform.clone(), self.operations.clone());
        Box::pin(async move { pipeline::run(&platform, &operations, request).await })
    }
}
