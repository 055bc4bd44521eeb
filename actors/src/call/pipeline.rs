//! The way of a call. Functions, the artifact endpoints and the session routes of client libraries
//! all take these steps, in this order:
//!
//! 1. **Authenticate**: find out who calls, as far as the credentials say.
//! 2. **Rate limit**: take the call from the allowance of the account, or of the address.
//! 3. **Application**: check the application id and the JavaScript key.
//! 4. **Name**: find the operation. Only now is a caller refused whose credentials are not valid,
//!    or not of the kind that the operation takes.
//! 5. **Parameters**: read and check them.
//! 6. **Idempotency**: give the earlier reply to a request id that was used before, if the caller
//!    may still make the call.
//! 7. **Look up**: read the object that the call is about, and what it hangs from.
//! 8. **Authorize**: decide whether the caller may.
//! 9. **Handle**: do it. The audit entry and the stored reply are written in the transaction of the
//!    change itself ([`Call::change`]), and only if all that was read still holds.
//!
//! Where it does not hold any more, the call is decided anew from step 6.

use crate::{
    call::{
        authn::{Admission, Credentials, Origin},
        authz,
        context::{Call, Caller},
        idempotency::IdempotencyKey,
        lookup::{self, Ancestry},
        rate_limit::Allowance,
        redecide::redecided,
    },
    platform::Platform,
};
use bytes::Bytes;
use contract::{
    Effect, Fault, Prepared, Reply, Route, UserId, function::SessionUse, function::is_a_name,
};
use std::{collections::HashMap, sync::Arc};

/// A call as it came in.
pub struct Request {
    /// What is called.
    pub target: Target,
    /// What the request presents.
    pub credentials: Credentials,
    /// The parameters.
    pub body: Bytes,
    /// Where it comes from.
    pub origin: Origin,
    /// For the reply's header and the log.
    pub request_id: Arc<str>,
    /// The client's own id for a change that is to happen once.
    pub idempotency_key: Option<String>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
}

/// What is called.
pub enum Target {
    /// The function of this name.
    Function(String),
    /// An endpoint.
    Endpoint {
        /// Its name.
        name: &'static str,
        /// The values in its path, in their order.
        path: Vec<String>,
    },
}

/// The answer to a call.
pub struct Response {
    /// The reply, or why there is none.
    pub reply: Result<Reply, Fault>,
    /// What the caller has left.
    pub allowance: Allowance,
    /// The name of the operation, where there is one.
    pub operation: Option<&'static str>,
    /// The caller, where one was proved.
    pub user: Option<UserId>,
}

/// All that can be called.
pub struct Operations {
    functions: HashMap<&'static str, Route<Platform>>,
    endpoints: HashMap<&'static str, Route<Platform>>,
}

impl Default for Operations {
    /// All that is declared. It compiles only where the platform serves every declared operation.
    fn default() -> Self {
        let named = |route: Route<Platform>| (route.spec.name, route);
        Operations {
            functions: contract::routes().map(named).collect(),
            endpoints: contract::endpoint::all_routes().map(named).collect(),
        }
    }
}

impl Operations {
    fn find(&self, target: &Target) -> Option<&Route<Platform>> {
        match target {
            Target::Function(name) => self.functions.get(name.as_str()),
            Target::Endpoint { name, .. } => self.endpoints.get(name),
        }
    }
}

/// Takes a call all the way.
pub async fn run(platform: &Platform, operations: &Operations, request: Request) -> Response {
    let Admission { allowance, caller } =
        platform.authn.admit(&platform.world, &request.credentials, request.origin);
    let user = caller.as_ref().ok().and_then(|c| c.user.as_ref()).map(|user| user.id);
    let route = operations.find(&request.target);
    let operation = route.map(|route| route.spec.name);
    let reply = match allowance.check() {
        Ok(()) => admitted(platform, route, caller, request).await,
        Err(fault) => Err(fault),
    };
    Response { reply, allowance, operation, user }
}

/// The steps of a call that the caller has an allowance for.
async fn admitted(
    platform: &Platform,
    route: Option<&Route<Platform>>,
    caller: Result<Caller, Fault>,
    request: Request,
) -> Result<Reply, Fault> {
    let application = route.is_none_or(|route| route.spec.application);
    // A deploy token names its app and its person.
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
        key.keep_refusal(platform, fault, call.now);
    }
    reply
}

fn unknown(target: Target) -> Fault {
    match target {
        Target::Function(name) if is_a_name(name.as_bytes()) => Fault::UnknownFunction(name),
        Target::Function(_) => Fault::UnknownFunction("that name".into()),
        Target::Endpoint { .. } => Fault::NoRoute,
    }
}

/// Decides and handles a call; again, where something that it was based on changed meanwhile.
async fn decide(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Reply, Fault> {
    redecided(async || {
        if let Some(earlier) = earlier_reply(platform, params, call).await? {
            return earlier;
        }
        match attempt(platform, params, call).await {
            Err(Fault::Stale) => {
                call.now = platform.world.ports.clock.now();
                Err(Fault::Stale)
            }
            // Of two calls with one request id at the same moment, the one that comes second is
            // refused for what the first has done meanwhile: it gets the first one's reply.
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
    let earlier = key.earlier_reply(platform, call.now).await?;
    if earlier.is_some() {
        match authorized(platform, params, call) {
            // The object may have been deleted since, by the first call itself.
            Ok(_) | Err(Denied::Missing(Fault::NotFound(_))) => {}
            Err(Denied::Missing(fault) | Denied::Refused(fault)) => return Err(fault),
        }
    }
    Ok(earlier)
}

/// Why a call is not handled.
enum Denied {
    /// Its object cannot be read, or there is none.
    Missing(Fault),
    /// The caller may not make it.
    Refused(Fault),
}

/// Looks the object of a call up, and decides whether the caller may make the call.
fn authorized(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &Call,
) -> Result<Ancestry, Denied> {
    let (world, requirement) = (&platform.world, params.requirement());
    authz::check_scopes(&call.caller, &requirement).map_err(Denied::Refused)?;
    let ancestry =
        lookup::find(world, &call.caller, requirement.subject).map_err(Denied::Missing)?;
    authz::authorize(world, &call.caller, &requirement, &ancestry).map_err(Denied::Refused)?;
    Ok(ancestry)
}

async fn attempt(
    platform: &Platform,
    params: &dyn Prepared<Platform>,
    call: &mut Call,
) -> Result<Reply, Fault> {
    let ancestry = authorized(platform, params, call);
    let ancestry = ancestry.map_err(|(Denied::Missing(fault) | Denied::Refused(fault))| fault)?;
    call.ancestry = Arc::new(ancestry);
    params.serve(platform, call).await
}
