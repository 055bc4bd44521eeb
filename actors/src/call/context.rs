//! The context of a call: who calls, and what the call is about.

use super::{authn, authz, idempotency::IdempotencyKey, lookup::Ancestry, rate_limit::network};
use crate::{
    kinds::{
        people::{
            accounts::{Accounts, Session},
            tokens::Tokens,
        },
        world::World,
    },
    runtime::turns::Tenant,
};
use contract::{Fault, Timestamp, TokenId, UserId, operators::Via};
use std::{net::IpAddr, sync::Arc};
use store::Snapshot;

#[derive(Clone, Default)]
pub struct Caller {
    /// Whether the caller presented the master key.
    pub master: bool,
    /// The user, if a session or a deploy token proved one.
    pub user: Option<SignedIn>,
}

impl Caller {
    /// The deploy token that proved the user.
    pub fn token(&self) -> Option<&Snapshot<Tokens>> {
        match &self.user {
            Some(SignedIn { credential: Credential::Token(_, token), .. }) => Some(token),
            _ => None,
        }
    }

    /// Whether a deploy token proved the user.
    pub fn is_token(&self) -> bool {
        self.token().is_some()
    }
}

/// A user that a session or a deploy token proved.
#[derive(Clone)]
pub struct SignedIn {
    pub id: UserId,
    pub account: Snapshot<Accounts>,
    pub credential: Credential,
}

impl SignedIn {
    /// Whether the call has the standing of a superadmin. A deploy token never has it: it has the
    /// standing of its maker's memberships.
    pub fn is_superadmin(&self) -> bool {
        self.account.state.superadmin && matches!(self.credential, Credential::Session(..))
    }
}

/// The proof of who a user is.
#[derive(Clone)]
pub enum Credential {
    /// The key is the digest of the session's token.
    Session(String, Snapshot<Session>),
    Token(TokenId, Snapshot<Tokens>),
}

#[derive(Clone)]
pub struct Call {
    pub world: Arc<World>,
    /// The name of the function or endpoint.
    pub function: &'static str,
    pub caller: Caller,
    pub address: IpAddr,
    /// Appears in the reply's header and in the log.
    pub request_id: Arc<str>,
    pub user_agent: Option<String>,
    /// The time of the decision. A call that is decided again gets a new time.
    pub now: Timestamp,
    /// The object that the call is about, and its ancestors.
    pub ancestry: Arc<Ancestry>,
    pub idempotency: Option<IdempotencyKey>,
    /// Whether the reply holds a secret. Such a reply is never stored.
    pub secret: bool,
    /// Whether a change creates the object in the reply: status 201 instead of 200.
    pub creates: bool,
}

impl Call {
    /// The user; [`Fault::Unauthenticated`] if the caller has none.
    pub fn user(&self) -> Result<&SignedIn, Fault> {
        let why = if self.caller.master {
            "this needs a person, and the master key alone is nobody: sign in with loginWithEmail"
        } else {
            "this needs a user: sign in with loginWithEmail"
        };
        self.caller.user.as_ref().ok_or_else(|| Fault::Unauthenticated(why.into()))
    }

    /// For whom work is done that concerns no organization.
    pub fn tenant(&self) -> Tenant {
        let user = self.caller.user.as_ref().map(|user| Tenant::User(user.id));
        user.unwrap_or_else(|| Tenant::Address(network(self.address)))
    }

    /// The user whose things a list shows; `None` for the master key alone, which lists everything.
    pub fn listed_user(&self) -> Result<Option<&SignedIn>, Fault> {
        match &self.caller {
            Caller { master: true, user: None } => Ok(None),
            _ => self.user().map(Some),
        }
    }

    /// The session and its key; [`Fault::Unauthenticated`] if the caller has none.
    pub fn session(&self) -> Result<(&str, &Snapshot<Session>), Fault> {
        match &self.user()?.credential {
            Credential::Session(key, session) => Ok((key, session)),
            Credential::Token(..) => Err(Fault::Unauthenticated(
                "this needs a session: sign in with loginWithEmail".into(),
            )),
        }
    }

    /// The credential for the audit log. The master key comes before a session or token.
    pub fn via(&self) -> Via {
        match &self.caller {
            Caller { master: true, .. } => Via::MasterKey,
            Caller { user: Some(SignedIn { credential: Credential::Session(..), .. }), .. } => {
                Via::Session
            }
            Caller { user: Some(SignedIn { credential: Credential::Token(..), .. }), .. } => {
                Via::DeployToken
            }
            Caller { user: None, .. } => Via::Nobody,
        }
    }

    /// The same call, whose change is refused if the caller's account changes meanwhile. For what goes
    /// on to work for the caller without a session: what a new password ends must not come back
    /// through a call that began before.
    pub fn held_to_account(&self) -> Result<Call, Fault> {
        let world = &self.world;
        let Some(user) = &self.caller.user else { return Ok(self.clone()) };
        // Read before the credential is checked again, so that the check holds for it.
        let account = authz::account(&world.store, user.id)?;
        authn::check_again(world, &self.caller, self.now)?;
        let (id, user) = (user.id, SignedIn { account: account.clone(), ..user.clone() });
        let ancestry = Ancestry { account: Some((id, account)), ..(*self.ancestry).clone() };
        let caller = Caller { user: Some(user), ..self.caller };
        Ok(Call { caller, ancestry: Arc::new(ancestry), ..self.clone() })
    }
}
