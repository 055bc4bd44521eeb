//! Long calls are taken by a router of their own.

use super::world::{Receiver, clock, life};
use actix::{Actor, Context, Handler, MessageResult};
use actors::call::{
    authn::{Credentials, Origin},
    pipeline::{Counts, Request, Response, Target},
    rate_limit::Allowance,
    router::Router,
};
use contract::Fault;

/// Answers each call with its own name.
struct LongCalls;

impl Actor for LongCalls {
    type Context = Context<Self>;
}

impl Handler<Request> for LongCalls {
    type Result = MessageResult<Request>;

    fn handle(&mut self, _: Request, _: &mut Self::Context) -> Self::Result {
        MessageResult(Response {
            reply: Err(Fault::Internal),
            allowance: Allowance::unlimited(),
            operation: Some("the router of long calls"),
            user: None,
        })
    }
}

#[test]
fn long_calls_keep_no_short_ones_waiting() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let receiver = Receiver::new(&clock);
    life(folder.path(), (&clock, &receiver), async |world| {
        let to = Some(LongCalls.start().recipient());
        let router = Router::leaving_long_calls(world.platform.clone(), to).start();
        for (name, body, takes_long) in [
            ("svc_getBuilds", 0, true),
            ("svc_getWebhookDeliveries", 0, true),
            ("svc_getBuildLogs", 0, true),
            ("svc_reportBuild", 1 << 20, true),
            ("svc_reportBuild", 1 << 10, false),
            ("svc_search", 0, true),
            ("svc_getHome", 0, true),
            ("getCurrentUser", 0, false),
            ("svc_getBuild", 0, false),
            ("svc_createWebhook", 0, false),
            ("svc_noSuchFunction", 0, false),
        ] {
            let request = Request {
                target: Target::Function(name.into()),
                credentials: Credentials::default(),
                body: vec![b' '; body].into(),
                origin: Origin { address: [127, 0, 0, 1].into(), is_known: true },
                request_id: "r".into(),
                idempotency_key: None,
                user_agent: None,
                counts: Counts::Nothing,
            };
            let by = router.send(request).await.unwrap().operation;
            assert_eq!(by == Some("the router of long calls"), takes_long, "{name}");
        }
    });
}
