//! Lists are read by a router of their own.

use super::world::{Receiver, clock, life};
use actix::{Actor, Context, Handler, MessageResult};
use actors::call::{
    authn::{Credentials, Origin},
    pipeline::{Counts, Request, Response, Target},
    rate_limit::Allowance,
    router::Router,
};
use contract::Fault;

/// Answers each list with its own name.
struct Lists;

impl Actor for Lists {
    type Context = Context<Self>;
}

impl Handler<Request> for Lists {
    type Result = MessageResult<Request>;

    fn handle(&mut self, _: Request, _: &mut Self::Context) -> Self::Result {
        MessageResult(Response {
            reply: Err(Fault::Internal),
            allowance: Allowance::unlimited(),
            operation: Some("the router of lists"),
            user: None,
        })
    }
}

#[test]
fn long_lists_are_read_on_a_thread_that_answers_no_other_call() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let lists = Some(Lists.start().recipient());
        let router = Router::with_lists(world.platform.clone(), lists).start();
        for (name, is_list) in [
            ("svc_getBuilds", true),
            ("svc_getWebhookDeliveries", true),
            ("svc_getBuildLogs", true),
            ("getCurrentUser", false),
            ("svc_getBuild", false),
            ("svc_createWebhook", false),
            ("svc_noSuchFunction", false),
        ] {
            let request = Request {
                target: Target::Function(name.into()),
                credentials: Credentials::default(),
                body: Default::default(),
                origin: Origin { address: [127, 0, 0, 1].into(), is_known: true },
                request_id: "r".into(),
                idempotency_key: None,
                user_agent: None,
                counts: Counts::Nothing,
            };
            let by = router.send(request).await.unwrap().operation;
            assert_eq!(by == Some("the router of lists"), is_list, "{name}");
        }
    });
}
