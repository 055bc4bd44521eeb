//! Authentication: finds out who calls from the credentials of a request.

use super::{
    authz,
    context::{Caller, Credential, SignedIn},
    platform::Settings,
    rate_limit::{Allowance, Limiter, RateKey},
};
use crate::kinds::{
    people::{
        accounts::{Account, Session, digest},
        tokens::{LastUse, Token, TokenClaim, Tokens},
    },
    world::World,
};
use contract::{Fault, Timestamp, UserId, authentication::Tier};
use std::{net::IpAddr, sync::Arc};
use store::{Change, Snapshot};
use subtle::ConstantTimeEq;

/// The credentials of a request, not yet checked.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    pub application_id: Option<String>,
    pub javascript_key: Option<String>,
    pub session_token: Option<String>,
    pub master_key: Option<String>,
    /// The text after `Bearer` in the `Authorization` header: a deploy token.
    pub bearer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The client's address. The rate limit and the use of the master key depend on it.
    pub address: IpAddr,
    /// False if the address may be a proxy's: the proxy is not trusted or does not name the client.
    pub is_known: bool,
}

/// The prefix of deploy tokens.
pub const TOKEN_PREFIX: &str = "svc_dt_";

/// Authentication and the rate limit.
pub struct Authn {
    settings: Arc<Settings>,
    pub limiter: Limiter,
}

/// A request that was counted against the rate limit of its caller.
pub struct Admission {
    pub allowance: Allowance,
    /// The caller, or why the credentials are refused.
    pub caller: Result<Caller, Fault>,
}

impl Authn {
    pub(crate) fn new(settings: Arc<Settings>, is_alone: bool) -> Self {
        Authn { settings, limiter: Limiter::start(is_alone) }
    }

    /// Finds out who calls. The cost of the call counts against the account that the credentials
    /// prove, or else against the address. A call that costs 0 does not count. The master key has no
    /// limit.
    pub fn admit(
        &self,
        world: &World,
        credentials: &Credentials,
        origin: Origin,
        cost: u32,
    ) -> Admission {
        let caller = self.identify(world, credentials, origin);
        let (key, tier) = match &caller {
            Ok(Caller { master: true, .. }) => {
                return Admission { allowance: Allowance::unlimited(), caller };
            }
            Ok(Caller { user: Some(user), .. }) => {
                (RateKey::User(user.id), user.account.state.tier())
            }
            _ => (RateKey::address(origin.address), self.settings.anonymous_tier),
        };
        Admission { allowance: self.limiter.take(key, tier, cost), caller }
    }

    /// The allowance of a request's caller. The request is not counted.
    pub fn peek(&self, world: &World, credentials: &Credentials, origin: Origin) -> Allowance {
        match self.identify(world, credentials, origin) {
            Ok(Caller { master: true, .. }) => Allowance::unlimited(),
            Ok(Caller { user: Some(user), .. }) => {
                self.limiter.peek(RateKey::User(user.id), user.account.state.tier())
            }
            _ => self.limiter.peek(RateKey::address(origin.address), self.settings.anonymous_tier),
        }
    }

    /// The allowance of a user; `None` if the account cannot be read.
    pub fn peek_user(&self, world: &World, user: UserId) -> Option<Allowance> {
        let account = authz::account(&world.store, user).ok()?;
        Some(self.limiter.peek(RateKey::User(user), account.state.tier()))
    }

    /// Checks the application id, and the JavaScript key if one is configured. A value that is sent
    /// must be right. With `required`, the application id must be sent, and the JavaScript key too
    /// if the settings require it.
    pub fn check_application(
        &self,
        credentials: &Credentials,
        required: bool,
    ) -> Result<(), Fault> {
        let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
        match &credentials.application_id {
            None if required => return refused("the header X-Backend-Application-Id is missing"),
            Some(id) if !same(id, &self.settings.application_id) => {
                return refused("the application id is not known here");
            }
            _ => {}
        }
        match (&self.settings.javascript_key, &credentials.javascript_key) {
            (Some(key), Some(sent)) if !same(key, sent) => refused("the JavaScript key is wrong"),
            (Some(_), None)
                if required
                    && self.settings.require_javascript_key
                    && credentials.master_key.is_none() =>
            {
                refused("the header X-Backend-Javascript-Key is missing")
            }
            _ => Ok(()),
        }
    }

    fn identify(
        &self,
        world: &World,
        credentials: &Credentials,
        origin: Origin,
    ) -> Result<Caller, Fault> {
        let now = world.ports.clock.now();
        let master = match &credentials.master_key {
            None => false,
            Some(key) => self.check_master(key, origin)?,
        };
        let user = match (&credentials.session_token, &credentials.bearer) {
            (Some(token), _) if !token.is_empty() => match session(world, token, now) {
                Ok(user) => Some(user),
                // Client libraries may send a stale session along with the master key.
                Err(_) if master => None,
                Err(fault) => return Err(fault),
            },
            (_, Some(bearer)) => Some(token(world, bearer, now)?),
            _ => None,
        };
        Ok(Caller { master, user })
    }

    fn check_master(&self, key: &str, origin: Origin) -> Result<bool, Fault> {
        let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
        if !origin.is_known {
            return refused(
                "the master key is not accepted: this request was forwarded by a proxy that is not \
                 trusted, or that does not say for whom; name the proxy in SVC_TRUSTED_PROXIES",
            );
        }
        if !self.settings.master_key_addresses.contains(&origin.address.to_canonical()) {
            return refused("the master key is not accepted from this address");
        }
        if !same(key, &self.settings.master_key) {
            return refused("the master key is wrong");
        }
        Ok(true)
    }

    /// Adapts a user's rate limit to a changed tier.
    pub fn tier_changed(&self, user: UserId, from: Tier, to: Tier) {
        self.limiter.change_tier(RateKey::User(user), from, to);
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Refuses a caller whose session or deploy token has ended since it was checked.
pub fn check_again(world: &World, caller: &Caller, now: Timestamp) -> Result<(), Fault> {
    let ended = || Fault::Unauthenticated("this session or token has ended".into());
    let Some(user) = &caller.user else { return Ok(()) };
    let account = authz::account(&world.store, user.id).map_err(|_| ended())?;
    let stands = match &user.credential {
        Credential::Session(key, _) => {
            let session = world.store.get::<Session>(key)?;
            session.is_some_and(|session| is_session_valid(&session, &account, now))
        }
        Credential::Token(id, _) => {
            let token = world.store.get::<Tokens>(id)?;
            token.is_some_and(|token| is_token_valid(&token, &account, now))
        }
    };
    if stands { Ok(()) } else { Err(ended()) }
}

fn is_session_valid(session: &Session, account: &Account, now: Timestamp) -> bool {
    session.expires_at > now && session.epoch == account.epoch
}

fn is_token_valid(token: &Token, maker: &Account, now: Timestamp) -> bool {
    token.revoked_at(maker).is_none() && token.expires_at.is_none_or(|end| end > now)
}

fn session(world: &World, token: &str, now: Timestamp) -> Result<SignedIn, Fault> {
    let invalid =
        || Fault::Unauthenticated("this session is not valid or has ended: sign in again".into());
    if token.len() > 64 {
        return Err(invalid());
    }
    let key = digest(token);
    let session = world.store.get::<Session>(&key)?.ok_or_else(invalid)?;
    let id = session.user;
    let account = authz::account(&world.store, id).map_err(|_| invalid())?;
    if !is_session_valid(&session, &account, now) {
        return Err(invalid());
    }
    touch(world, &key, &session, now);
    Ok(SignedIn { id, account, credential: Credential::Session(key, session) })
}

/// Notes that a session is in use. The call does not wait for the write.
fn touch(world: &World, key: &String, session: &Snapshot<Session>, now: Timestamp) {
    if let Some(after) = session.touched(now) {
        world.store.note(Change::new().replace::<Session>(
            &key.to_owned(),
            Some(session.as_ref()),
            after,
        ));
    }
}

fn token(world: &World, bearer: &str, now: Timestamp) -> Result<SignedIn, Fault> {
    let invalid = || {
        Fault::Unauthenticated(
            "this deploy token is not valid, expired or revoked: create a new one".into(),
        )
    };
    if !bearer.starts_with(TOKEN_PREFIX) || bearer.len() > 64 {
        return Err(invalid());
    }
    let held = world.store.held_by(&TokenClaim::of(&digest(bearer)))?;
    let (token_id, token) = held.ok_or_else(invalid)?;
    let id = token.created_by;
    let account = authz::account(&world.store, id).map_err(|_| invalid())?;
    if !is_token_valid(&token, &account, now) {
        return Err(invalid());
    }
    let used = world.store.get::<LastUse>(&token_id)?;
    if used.is_none_or(|used| now.since(used.at) >= LastUse::EVERY) {
        // Only while the token is there: nobody would remove the record afterwards.
        let change = Change::new().require::<Tokens>(&token_id, &token);
        world.store.note(change.merge::<LastUse>(&token_id, now));
    }
    Ok(SignedIn { id, account, credential: Credential::Token(token_id, token) })
}
