//! The pipeline of a call. Functions, the artifact endpoints and the session routes of client
//! libraries all take these steps, in this order:
//!
//! 1. **Fence**: wait until this process sees every change that was acknowledged before the call.
//! 2. **Authenticate**: find out from the credentials who calls.
//! 3. **Rate limit**: take the cost of the call from the allowance of the account or of the address.
//! 4. **Application**: check the application id and the JavaScript key.
//! 5. **Name**: find the operation. Refuse a caller whose credentials are not valid or not of the
//!    kind that the operation needs.
//! 6. **Parameters**: read and check them.
//! 7. **Idempotency**: answer a repeated call with its stored reply, if the caller may still make
//!    the call.
//! 8. **Look up**: read the object that the call is about, and its ancestors.
//! 9. **Authorize**: decide whether the caller may.
//! 10. **Handle**: run the handler. One transaction writes the change, the audit entry and the stored
//!     reply ([`CallTo::change`](super::change::CallTo::change)), and only if the ancestors are as they
//!     were read.
//!
//! A call that is stale waits at the fence again, and is decided again from step 7.

use super::{
    authn::{Admission, Credentials, Origin},
    authz,
    context::{Call, Caller},
    idempotency::IdempotencyKey,
    lookup::{self, Ancestry},
    platform::Platform,
    rate_limit::Allowance,
};
use crate::runtime::redecide::redecided;
use bytes::Bytes;
use contract::{
    Effect, Fault, Prepared, Reply, Route, UserId, assertions::is_a_name, function::SessionUse,
};
use std::{collections::HashMap, sync::Arc};

pub struct Request {
    pub target: Target,
    pub credentials: Credentials,
    /// The parameters, not yet checked.
    pub body: Bytes,
    pub origin: Origin,
    /// Appears in the reply's header and in the log.
    pub request_id: Arc<str>,
    /// The client's request id. A change with it happens once.
    pub idempotency_key: Option<String>,
    pub user_agent: Option<String>,
    pub counts: Counts,
}

/// What a call takes from the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// As much as the table of the function says.
    Cost,
    /// A read for a page takes one call, a change its cost.
    Page,
    /// Nothing: another call of the same page was counted.
    Nothing,
}

pub enum Target {
    /// The name of a function.
    Function(String),
    Endpoint {
        name: &'static str,
        /// The values in the path, in their order.
        path: Vec<String>,
    },
}

pub struct Response {
    pub reply: Result<Reply, Fault>,
    pub allowance: Allowance,
    /// The name of the operation, if the target names one.
    pub operation: Option<&'static str>,
    /// The user, if the credentials proved one.
    pub user: Option<UserId>,
}

/// A body with more bytes takes milliseconds to read.
const LARGE_BODY: usize = 64 << 10;

/// The functions and the endpoints, by name.
pub struct Operations {
    functions: HashMap<&'static str, Weighed>,
    endpoints: HashMap<&'static str, Weighed>,
}

/// An operation, what a call of it costs, and whether it takes long.
struct Weighed {
    route: Route<Platform>,
    cost: u32,
    takes_long: bool,
}

impl From<Route<Platform>> for Weighed {
    fn from(route: Route<Platform>) -> Self {
        Weighed { cost: route.spec.cost(), takes_long: route.spec.takes_long(), route }
    }
}

impl Default for Operations {
    /// All declared operations. This compiles only if the platform serves each of them.
    fn default() -> Self {
        let named = |route: Route<Platform>| (route.spec.name, Weighed::from(route));
        Operations {
            functions: contract::routes().map(named).collect(),
            endpoints: contract::endpoint::routes().map(named).collect(),
        }
    }
}

impl Operations {
    fn find(&self, target: &Target) -> Option<&Weighed> {
        match target {
            Target::Function(name) => self.functions.get(name.as_str()),
            Target::Endpoint { name, .. } => self.endpoints.get(name),
        }
    }

    /// Whether a call occupies its thread for long: it reads many records, or the body is large.
    pub fn takes_long(&self, request: &Request) -> bool {
        request.body.len() > LARGE_BODY
            || self.find(&request.target).is_some_and(|found| found.takes_long)
    }
}

/// Runs all steps of a call.
pub async fn run(platform: &Platform, operations: &Operations, request: Request) -> Response {
    let found = operations.find(&request.target);
    let cost = match (request.counts, found) {
        (Counts::Nothing, _) => 0,
        (Counts::Page, Some(found)) if found.route.spec.effect == Effect::Read => 1,
        (Counts::Page | Counts::Cost, found) => found.map_or(1, |found| found.cost),
    };
    let fenced = platform.world.store.fence().await;
    let Admission { allowance, caller } =
        platform.authn.admit(&platform.world, &request.credentials, request.origin, cost);
    let user = caller.as_ref().ok().and_then(|c| c.user.as_ref()).map(|user| user.id);
    let route = found.map(|found| &found.route);
    let operation = route.map(|route| route.spec.name);
    let allowed = if cost > 0 { allowance.check() } else { Ok(()) };
    let reply = match allowed.and(fenced) {
        Ok(()) => admitted(platform, route, caller, request).await,
        Err(fault) => Err(fault),
    };
    Response { reply, allowance, operation, user }
}

/// Runs the steps after the rate limit.
async fn admitted(
    platform: &Platform,
    route: Option<&Route<Platform>>,
    caller: Result<Caller, Fault>,
    request: Request,
) -> Result<Reply, Fault> {
    let application = route.is_none_or(|route| route.spec.application);
    // A deploy token stands for the application id.
    let by_token = caller.as_ref().is_ok_and(Caller::is_token);
    platform.authn.check_application(&request.credentials, application && !by_token)?;

    let Some(Route { spec, prepare }) = route else { return Err(unknown(request.target)) };
    let caller = match caller {
        Err(_) if spec.session == SessionUse::Ignored => Caller::default(),
        caller => caller?,
    };
    authz::check_credential(&caller, spec)?;

    let path = match &request.target {
        Target::Function(_) => &[][..],
        Target::Endpoint { path, .. } => path,
    };
    let params = prepare(path, &request.body)?;

    let idempotency = request.idempotency_key.filter(|_| spec.effect == Effect::Change);
    let idempotency = idempotency.map(|id| {
        let who = (&caller, request.origin.address);
        let secret = &platform.settings.signing_key;
        IdempotencyKey::new(who, spec.name, &id, &params.fingerprint(), secret)
    });
    let mut call = Call {
        world: platform.world.clone(),
        function: spec.name,
        caller,
        address: request.origin.address,
        request_id: request.request_id,
        user_agent: request.user_agent,
        now: platform.world.ports.clock.now(),
        ancestry: Arc::default(),
        idempotency,
        secret: spec.secret,
        creates: spec.creates,
    };
    let limit = spec.limit.unwrap_or(platform.settings.function_limit);
    let done = tokio::time::timeout(limit, decide(platform, params.as_ref(), &mut call)).await;
    let reply = done.unwrap_or(Err(Fault::NoAnswer("the service")));
    if let (Err(fault), Some(key)) = (&reply, &call.idempotency) {
        key.keep_refusal(platform, fault, call.now).await;
    }
    reply
}

fn unknown(target: Target) -> Fault {
    match target {
        Target::Function(name) if is_a_name(name.as_bytes()) => Fault::UnknownFunction(Some(name)),
        Target::Function(_) => Fault::UnknownFunction(None),
        Target::Endpoint { .. } => Fault::NoRoute,
    }
}

/// Runs the steps from the idempotency on, and runs them again while they are stale.
async fn decide(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Reply, Fault> {
    let mut is_repeated = false;
    redecided(async || {
        if std::mem::replace(&mut is_repeated, true) {
            platform.world.store.fence().await?;
        }
        if let Some(earlier) = earlier_reply(platform, params, call).await? {
            return earlier;
        }
        match attempt(platform, params, call).await {
            Err(Fault::Stale) => {
                call.now = platform.world.ports.clock.now();
                Err(Fault::Stale)
            }
            // Of two calls with one idempotency key at the same moment, the second may be refused
            // because of the first one's change. It gets the first one's reply.
            Err(fault) if fault.is_final() => {
                earlier_reply(platform, params, call).await?.unwrap_or(Err(fault))
            }
            done => done,
        }
    })
    .await
}

async fn earlier_reply(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &Call,
) -> Result<Option<Result<Reply, Fault>>, Fault> {
    let Some(key) = &call.idempotency else { return Ok(None) };
    let Some(earlier) = key.earlier_reply(platform, call.now).await? else { return Ok(None) };
    // The object may have been deleted since, by the first call itself.
    let is_gone = || {
        let found = lookup::find(&platform.world, &call.caller, params.requirement().subject);
        matches!(found, Err(Fault::NotFound(_)))
    };
    match authorized(platform, params, call) {
        Err(fault) if !is_gone() => Err(fault),
        _ => Ok(Some(earlier)),
    }
}

/// Looks the object of a call up, and decides whether the caller may make the call.
fn authorized(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &Call,
) -> Result<Ancestry, Fault> {
    let (world, requirement) = (&platform.world, params.requirement());
    authz::check_scopes(&call.caller, &requirement)?;
    let ancestry = lookup::find(world, &call.caller, requirement.subject)?;
    authz::authorize(world, &call.caller, &requirement, &ancestry)?;
    Ok(ancestry)
}

async fn attempt(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Reply, Fault> {
    call.ancestry = Arc::new(authorized(platform, params, call)?);
    params.serve(platform, call).await
}
