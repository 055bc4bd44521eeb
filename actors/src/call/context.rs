//! The context of a call. One transaction writes the change of a call, its audit entry and its
//! stored reply, and requires that the ancestors of the object are as they were read.

use crate::{
    call::{
        audit::Event,
        authn, authz,
        idempotency::{IdempotencyKey, Outcome, StoredReply},
        lookup::Ancestry,
        rate_limit::network,
    },
    kinds::{
        accounts::{Accounts, Session},
        tokens::Tokens,
    },
    runtime::{
        handle::Handle,
        owner::{Answer, Rider},
        resource::{Input, Resource},
        turns::Tenant,
    },
    world::World,
};
use contract::{
    Fault, Timestamp, TokenId, UserId,
    operators::{AuditEvent, Via},
};
use serde::Serialize;
use std::{net::IpAddr, sync::Arc};
use store::{Change, Snapshot};

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
    pub fn held_to_account(&self, world: &World) -> Result<Call, Fault> {
        let Some(user) = &self.caller.user else { return Ok(self.clone()) };
        // Read before the credential is checked again, so that the check holds for it.
        let account = authz::account(&world.store, user.id)?;
        authn::check_again(world, &self.caller, self.now)?;
        let (id, user) = (user.id, SignedIn { account: account.clone(), ..user.clone() });
        let ancestry = Ancestry { account: Some((id, account)), ..(*self.ancestry).clone() };
        let caller = Caller { user: Some(user), ..self.caller };
        Ok(Call { caller, ancestry: Arc::new(ancestry), ..self.clone() })
    }

    /// Sends the command of this call to an owner and makes the reply from the state after it. The
    /// same transaction writes the audit entry and the stored reply. It is refused with
    /// [`Fault::Stale`] if an ancestor of the object changed since it was read.
    pub async fn change<R, T, F>(
        &self,
        world: &Arc<World>,
        owners: &Handle<R>,
        id: R::Key,
        command: R::Command,
        reply: F,
    ) -> Result<T, Fault>
    where
        R: Resource,
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let done = self.decide(world, owners, id, Input::Command(command), reply.clone()).await?;
        reply(&done.state)
    }

    /// Like [`change`](Call::change), for a resource that this call creates.
    pub async fn create<R, T, F>(
        &self,
        world: &Arc<World>,
        owners: &Handle<R>,
        id: R::Key,
        new: R::New,
        reply: F,
    ) -> Result<T, Fault>
    where
        R: Resource,
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let done =
            self.decide(world, owners, id, Input::Create(Box::new(new)), reply.clone()).await?;
        reply(&done.state)
    }

    /// Like [`change`](Call::change) or [`create`](Call::create), as the input says, for a call
    /// that looked up whether there is such a resource. If it ended meanwhile, the call is decided
    /// again, and creates a new one.
    pub async fn change_or_create<R, T, F>(
        &self,
        world: &World,
        owners: &Handle<R>,
        id: R::Key,
        input: Input<R>,
        reply: F,
    ) -> Result<T, Fault>
    where
        R: Resource,
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let done = self.decide(world, owners, id, input, reply.clone()).await;
        let done = done.map_err(|fault| match fault {
            Fault::NotFound(_) => Fault::Stale,
            fault => fault,
        })?;
        reply(&done.state)
    }

    /// The common part of [`change`](Call::change) and [`create`](Call::create). The answer also
    /// says whether this call changed the record.
    pub async fn decide<R, T, F>(
        &self,
        world: &World,
        owners: &Handle<R>,
        id: R::Key,
        input: Input<R>,
        reply: F,
    ) -> Answer<R>
    where
        R: Resource,
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Send + Sync + 'static,
    {
        let key = id.to_string();
        let event = self.event(world, &key);
        let (ancestry, idempotency) = (self.ancestry.clone(), self.idempotency.clone());
        let (secret, creates, now) = (self.secret, self.creates, self.now);
        let expired = self.expired_reply(world)?;
        let rider: Rider<R> = Arc::new(move |state| {
            let mut change =
                ancestry.require(Change::new(), &key).append::<Event>(&event.0.id, &event);
            if let Some(key) = &idempotency {
                let outcome = match secret {
                    true => Outcome::Secret,
                    false => Outcome::reply(json(&reply(state)?)?, creates),
                };
                let stored = key.stored(outcome, now);
                change = change.replace::<StoredReply>(&key.key, expired.as_deref(), stored);
            }
            Ok(change)
        });
        owners.ask_with(id, input, rider).await
    }

    /// Sends an input of this call to one of several owners, or to an owner whose reply comes later.
    /// The same transaction writes the audit entry. The reply is not stored, so a repeated call
    /// sends the input again.
    pub async fn tell<R: Resource>(
        &self,
        world: &World,
        owners: &Handle<R>,
        id: R::Key,
        input: Input<R>,
    ) -> Result<Arc<R::State>, Fault> {
        let key = id.to_string();
        let (event, ancestry) = (self.event(world, &key), self.ancestry.clone());
        let rider: Rider<R> = Arc::new(move |_| {
            Ok(ancestry.require(Change::new(), &key).append::<Event>(&event.0.id, &event))
        });
        Ok(owners.ask_with(id, input, rider).await?.state)
    }

    /// An expired stored reply that the sweeper has not removed yet. The new reply replaces it.
    fn expired_reply(&self, world: &World) -> Result<Option<Snapshot<StoredReply>>, Fault> {
        let Some(key) = &self.idempotency else { return Ok(None) };
        let found = world.store.get::<StoredReply>(&key.key)?;
        Ok(found.filter(|stored| stored.expires_at <= self.now))
    }

    /// Stores the reply of a call that is safe to repeat. The call does not wait for the write.
    pub fn keep(&self, world: &World, reply: &impl Serialize, created: bool) {
        let Some(key) = &self.idempotency else { return };
        if let (Ok(json), Ok(expired)) = (json(reply), self.expired_reply(world)) {
            let stored = key.stored(Outcome::reply(json, created), self.now);
            let change = Change::new();
            let change = change.replace::<StoredReply>(&key.key, expired.as_deref(), stored);
            world.store.note(change);
        }
    }

    /// Replaces the stored reply at the end of a long change. Until then, a repeated call gets the
    /// reply from the beginning of the change.
    pub fn finish(&self, world: &World, reply: &impl Serialize) {
        let Some(key) = &self.idempotency else { return };
        if let (Ok(Some(before)), Ok(json)) =
            (world.store.get::<StoredReply>(&key.key), json(reply))
        {
            let after = StoredReply { outcome: Outcome::Reply(json), ..(**before).clone() };
            world.store.note(Change::new().replace::<StoredReply>(
                &key.key,
                Some(before.as_ref()),
                after,
            ));
        }
    }

    /// Replaces the stored reply with the refusal of a change that was taken back.
    pub async fn take_back(&self, world: &World, fault: &Fault) {
        let Some(key) = &self.idempotency else { return };
        if let Ok(Some(before)) = world.store.get::<StoredReply>(&key.key) {
            let after = StoredReply { outcome: Outcome::refused(fault), ..(**before).clone() };
            let change =
                Change::new().replace::<StoredReply>(&key.key, Some(before.as_ref()), after);
            if let Err(e) = world.store.commit(change).await {
                tracing::warn!(error = %e, "a stored reply was not replaced by the refusal");
            }
        }
    }

    /// Runs work outside of the store once for each idempotency key. The key is stored before the
    /// work begins: a call that is repeated meanwhile, or after a crash, learns that the work may
    /// have been done, and does not run it again.
    pub async fn do_once<T: Serialize>(
        &self,
        world: &World,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let Some(key) = &self.idempotency else { return work.await };
        let kept = |outcome| key.stored(outcome, self.now);
        let expired = self.expired_reply(world)?;
        let begun = kept(Outcome::refused(&Fault::NoAnswer("the first call with this request id")));
        let begin = self.ancestry.require(Change::new(), "");
        let begin = begin.replace::<StoredReply>(&key.key, expired.as_deref(), begun);
        // Of two calls at the same moment, the second is stale here and then finds this reply.
        world.store.commit(begin).await?;
        let done = work.await;
        // The work is done, so a failure of the store must not fail the call.
        let before = world.store.get::<StoredReply>(&key.key).ok().flatten();
        let Some(before) = before.as_deref() else { return done };
        let change = match &done {
            Ok(reply) => {
                let after = kept(Outcome::Reply(json(reply)?));
                Change::new().replace::<StoredReply>(&key.key, Some(before), after)
            }
            // The work did not happen, so a repeated call may try it again.
            Err(Fault::Unavailable(_)) => Change::new().remove::<StoredReply>(&key.key, before),
            Err(fault) if fault.is_final() => Change::new().replace::<StoredReply>(
                &key.key,
                Some(before),
                kept(Outcome::refused(fault)),
            ),
            Err(_) => return done,
        };
        if let Err(e) = world.store.commit(change).await {
            tracing::warn!(error = %e, "a reply was not stored");
        }
        done
    }

    /// Writes an audit entry for a call that changes no record. The call does not wait for it.
    pub fn note(&self, world: &World, resource: &str) {
        let event = self.event(world, resource);
        world.store.note(Change::new().append::<Event>(&event.0.id, &event));
    }

    /// Writes an audit entry before a secret is shown. Returns when it is durable.
    pub async fn record(&self, world: &World, resource: &str) -> Result<(), Fault> {
        let event = self.event(world, resource);
        world.store.commit(Change::new().append::<Event>(&event.0.id, &event)).await
    }

    fn event(&self, world: &World, resource: &str) -> Event {
        Event(AuditEvent {
            id: world.ports.random.id(self.now),
            at: self.now,
            function: self.function.to_owned(),
            user_id: self.caller.user.as_ref().map(|user| user.id),
            via: self.via(),
            address: self.address.to_string(),
            resource: resource.to_owned(),
            request_id: self.request_id.to_string(),
        })
    }
}

fn json(reply: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(reply).map_err(|_| Fault::Internal)
}
