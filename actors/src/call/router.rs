//! The way in for function calls. One router lives on each HTTP worker; it finds the function and
//! takes the call through the checks in their order: limiter, application, name, session or key,
//! parameters, standing.

use crate::{
    call::{
        authn::{Counting, Credentials, Origin},
        authz::{self, Asked},
        context::{Call, Caller},
        idempotency::{LIFETIME, Outcome, Replay, ReplayKey},
        rate_limit::Allowance,
    },
    platform::Platform,
};
use actix::prelude::*;
use bytes::Bytes;
use contract::{
    Effect, Fault, Function, Prepared, Route, Spec, UserId, apps, artifacts,
    authentication::{self, LoginWithEmail, RegisterUser, RequestPasswordReset, ResetPassword},
    backend_instances, backups, deployments,
    function::is_a_name,
    image_builds, images, instance_helpers, market_instances, operators, organizations, projects,
    releases, templates, tokens,
};
use std::{collections::HashMap, rc::Rc, sync::Arc};
use store::Change;

/// A function call as it came in.
#[derive(Message)]
#[rtype(result = "Answered")]
pub struct Invoke {
    /// The name in the path.
    pub function: String,
    /// What the request presents.
    pub credentials: Credentials,
    /// The parameters.
    pub body: Bytes,
    /// Where it comes from.
    pub origin: Origin,
    /// For the reply's header and the log.
    pub request_id: Arc<str>,
    /// The client's own id for a change that is to happen once.
    pub once: Option<String>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
}

/// The answer to a call.
pub struct Answered {
    /// The reply's JSON, or why there is none.
    pub reply: Result<Vec<u8>, Fault>,
    /// What the caller has left.
    pub allowance: Allowance,
    /// The function, where the name is one.
    pub function: Option<&'static str>,
    /// The caller, where one was proved.
    pub user: Option<UserId>,
}

/// Functions that sign somebody in or up: a stale session that comes along is not looked at.
const WITHOUT_SESSION: [&str; 4] =
    [RegisterUser::NAME, LoginWithEmail::NAME, RequestPasswordReset::NAME, ResetPassword::NAME];

/// How often a call is decided anew because something it was based on changed meanwhile.
const REDECISIONS: usize = 16;

/// The router of one HTTP worker.
pub struct Router {
    platform: Rc<Platform>,
    table: Rc<HashMap<&'static str, Route<Platform>>>,
}

impl Router {
    /// A router for the platform. It compiles only where the platform serves every declared
    /// function.
    pub fn new(platform: Platform) -> Self {
        let groups = [
            authentication::routes(),
            projects::routes(),
            organizations::routes(),
            apps::routes(),
            backend_instances::routes(),
            market_instances::routes(),
            instance_helpers::routes(),
            backups::routes(),
            deployments::routes(),
            templates::routes(),
            images::routes(),
            image_builds::routes(),
            artifacts::routes(),
            releases::routes(),
            tokens::routes(),
            operators::routes(),
            #[cfg(feature = "sabotage")]
            contract::sabotage::routes(),
        ];
        let table = groups.into_iter().flatten().map(|route| (route.spec.name, route)).collect();
        Router { platform: Rc::new(platform), table: Rc::new(table) }
    }

    /// The names that are served.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.table.keys().copied()
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

impl Handler<Invoke> for Router {
    type Result = ResponseFuture<Answered>;
    fn handle(&mut self, invoke: Invoke, _: &mut Self::Context) -> Self::Result {
        let (platform, table) = (self.platform.clone(), self.table.clone());
        Box::pin(async move { answer(&platform, &table, invoke).await })
    }
}

async fn answer(
    platform: &Platform,
    table: &HashMap<&'static str, Route<Platform>>,
    invoke: Invoke,
) -> Answered {
    let counting = platform.gate.count(&platform.world, &invoke.credentials, invoke.origin);
    let Counting { allowance, caller } = counting;
    let user = caller.as_ref().ok().and_then(|c| c.user.as_ref()).map(|user| user.id);
    let route = table.get(invoke.function.as_str());
    let reply = match allowance.retry_after {
        Some(wait) => Err(Fault::RateLimited { retry_after: wait.as_secs() + 1 }),
        None => serve(platform, route, caller, invoke).await,
    };
    Answered { reply, allowance, function: route.map(|r| r.spec.name), user }
}

async fn serve(
    platform: &Platform,
    route: Option<&Route<Platform>>,
    caller: Result<Caller, Fault>,
    invoke: Invoke,
) -> Result<Vec<u8>, Fault> {
    platform.gate.check_application(&invoke.credentials, caller.as_ref().ok())?;
    let Some(route) = route else {
        let name = if is_a_name(invoke.function.as_bytes()) {
            invoke.function
        } else {
            "that name".into()
        };
        return Err(Fault::UnknownFunction(name));
    };
    let caller = match caller {
        Err(_) if WITHOUT_SESSION.contains(&route.spec.name) => Caller::default(),
        caller => caller?,
    };
    authz::check_proof(&caller, route.spec.who, route.spec.scope)?;
    let params = (route.prepare)(&invoke.body)?;
    let replay = match (&invoke.once, route.spec.effect) {
        (Some(id), Effect::Change) => {
            let who = match &caller {
                Caller { user: Some(user), .. } => user.id.to_string(),
                Caller { master: true, .. } => "master".into(),
                Caller { user: None, .. } => invoke.origin.address.to_string(),
            };
            let secret = &platform.settings.signing_key;
            Some(ReplayKey::new(&who, route.spec.name, id, &params.fingerprint(), secret))
        }
        _ => None,
    };
    let mut call = Call {
        function: route.spec.name,
        caller,
        address: invoke.origin.address,
        request_id: invoke.request_id,
        user_agent: invoke.user_agent,
        now: platform.world.ports.clock.now(),
        ancestry: Arc::default(),
        replay,
        secret: route.spec.secret,
    };
    let limit = platform.settings.function_limit;
    let done =
        tokio::time::timeout(limit, decide(platform, route, params.as_ref(), &mut call)).await;
    let reply = done.unwrap_or(Err(Fault::NoAnswer("the service")));
    if let (Err(fault), Some(key)) = (&reply, &call.replay) {
        keep_refusal(platform, key, fault, &call);
    }
    reply
}

/// Looks for an earlier reply, decides the standing, and serves. All of it again where something
/// that it was based on changed meanwhile.
async fn decide(
    platform: &Platform,
    route: &Route<Platform>,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Vec<u8>, Fault> {
    for _ in 0..REDECISIONS {
        if let Some(earlier) = earlier_reply(platform, call).await? {
            return earlier;
        }
        match attempt(platform, route, params, call).await {
            Err(Fault::Stale) => call.now = platform.world.ports.clock.now(),
            // Of two calls with one request id at the same moment, the one that comes second is
            // refused for what the first has done meanwhile: it gets the first one's reply.
            Err(fault) if fault.is_final() => {
                return earlier_reply(platform, call).await?.unwrap_or(Err(fault));
            }
            done => return done,
        }
    }
    Err(Fault::Stale)
}

/// The answer that an earlier call with the same request id got, where there was one. It is given
/// again only once it is durable.
async fn earlier_reply(
    platform: &Platform,
    call: &Call,
) -> Result<Option<Result<Vec<u8>, Fault>>, Fault> {
    let Some(key) = &call.replay else { return Ok(None) };
    let replay = platform.world.store.get::<Replay>(&key.key)?;
    let replay = replay.filter(|replay| replay.expires_at > call.now);
    let Some(replay) = replay else { return Ok(None) };
    platform.world.store.barrier().await.map_err(|_| Fault::Uncertain)?;
    Ok(Some(replay.answer(key)))
}

async fn attempt(
    platform: &Platform,
    route: &Route<Platform>,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Vec<u8>, Fault> {
    let Spec { who, scope, own_scope, .. } = route.spec;
    let asked = Asked { who, scope, own_scope, subject: params.subject() };
    call.ancestry = Arc::new(authz::authorize(&platform.world, &call.caller, asked)?);
    params.serve(platform, call).await
}

/// Keeps a refusal that would be the same again, for a repetition of the request id.
fn keep_refusal(platform: &Platform, key: &ReplayKey, fault: &Fault, call: &Call) {
    if !fault.is_final() || matches!(fault, Fault::Again { .. } | Fault::Malformed(_)) {
        return;
    }
    let replay = Replay {
        fingerprint: key.fingerprint.clone(),
        outcome: Outcome::refused(fault),
        expires_at: call.now + LIFETIME,
    };
    platform.world.store.note(Change::new().create::<Replay>(&key.key, replay));
}
