//! Authentication: who calls, as the credentials of a request prove.

use crate::{
    call::{
        authz,
        context::{Caller, Credential, SignedIn},
        rate_limit::{Allowance, Limiter, RateKey},
    },
    kinds::{
        accounts::{Session, digest},
        tokens::{LastUse, TokenClaim},
    },
    platform::Settings,
    world::World,
};
use contract::{Fault, Timestamp, UserId, authentication::Tier};
use std::{net::IpAddr, sync::Arc};
use store::{Change, Snapshot};
use subtle::ConstantTimeEq;

/// What a request presents.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "each field is the credential it names")]
pub struct Credentials {
    pub application_id: Option<String>,
    pub javascript_key: Option<String>,
    pub session_token: Option<String>,
    pub master_key: Option<String>,
    /// What follows `Bearer` in the `Authorization` header.
    pub bearer: Option<String>,
}

/// What deploy tokens start with.
pub const TOKEN_PREFIX: &str = "svc_dt_";

/// Who may call, and how often.
pub struct Authn {
    settings: Arc<Settings>,
    /// How many calls each caller has left.
    pub limiter: Limiter,
}

/// A request that was counted against the limit of its caller.
pub struct Admission {
    /// What the caller has left.
    pub allowance: Allowance,
    /// Who it is, or why that cannot be said.
    pub caller: Result<Caller, Fault>,
}

impl Authn {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Authn { settings, limiter: Limiter::default() }
    }

    /// Counts a request. The caller is the account where credentials prove one, else the address.
    pub fn admit(
        &self,
        world: &World,
        credentials: &Credentials,
        address: IpAddr,
        peer: IpAddr,
    ) -> Admission {
        let caller = self.identify(world, credentials, peer);
        let allowance = match &caller {
            Ok(Caller { master: true, .. }) => Allowance::unlimited(),
            Ok(Caller { user: Some(user), .. }) => {
                self.limiter.take(RateKey::User(user.id), user.account.state.tier)
            }
            _ => self.limiter.take(RateKey::address(address), self.settings.anonymous_tier),
        };
        Admission { allowance, caller }
    }

    /// Checks the application id, and the JavaScript key where one is configured. What is sent must
    /// be right; where `required`, the application id must be sent.
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

    /// Who presents these credentials.
    fn identify(
        &self,
        world: &World,
        credentials: &Credentials,
        peer: IpAddr,
    ) -> Result<Caller, Fault> {
        let now = world.ports.clock.now();
        let master = match &credentials.master_key {
            None => false,
            Some(key) => self.check_master(key, peer)?,
        };
        let user = match (&credentials.session_token, &credentials.bearer) {
            (Some(token), _) if !token.is_empty() => match session(world, token, now) {
                Ok(user) => Some(user),
                // the master key passes whatever session a client library sends with it
                Err(_) if master => None,
                Err(fault) => return Err(fault),
            },
            (_, Some(bearer)) => Some(token(world, bearer, now)?),
            _ => None,
        };
        Ok(Caller { master, user })
    }

    fn check_master(&self, key: &str, peer: IpAddr) -> Result<bool, Fault> {
        let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
        if !self.settings.master_key_addresses.contains(&peer.to_canonical()) {
            return refused("the master key is not accepted from this address");
        }
        if !same(key, &self.settings.master_key) {
            return refused("the master key is wrong");
        }
        Ok(true)
    }

    /// An account's tier changed.
    pub fn tier_changed(&self, user: UserId, from: Tier, to: Tier) {
        self.limiter.change_tier(RateKey::User(user), from, to);
    }
}

/// Compares without telling by its time where two secrets differ.
fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

fn session(world: &World, token: &str, now: Timestamp) -> Result<SignedIn, Fault> {
    let invalid =
        || Fault::Unauthenticated("this session is not valid or has ended: sign in again".into());
    if token.len() > 64 {
        return Err(invalid());
    }
    let key = digest(token);
    let session = world.store.get::<Session>(&key)?.ok_or_else(invalid)?;
    if session.expires_at <= now {
        return Err(invalid());
    }
    let id = session.user;
    let account = authz::account(&world.store, id).map_err(|_| invalid())?;
    if account.state.epoch != session.epoch {
        return Err(invalid());
    }
    touch(world, &key, &session, now);
    Ok(SignedIn { id, account, credential: Credential::Session(key, session) })
}

/// Writes down that a session is in use. Nobody waits for it.
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
    let revoked = token.revoked_at(&account).is_some();
    if revoked || token.expires_at.is_some_and(|end| end <= now) {
        return Err(invalid());
    }
    let used = world.store.get::<LastUse>(&token_id)?;
    if used.is_none_or(|used| now.since(used.at) >= LastUse::EVERY) {
        world.store.note(Change::new().merge::<LastUse>(&token_id, now));
    }
    Ok(SignedIn { id, account, credential: Credential::Token(token_id, token) })
}
