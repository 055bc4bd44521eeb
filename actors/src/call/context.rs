//! What a call brings along, and how it changes things: with its audit entry, its stored reply and
//! all it was decided upon in the same transaction.

use crate::{
    call::{
        audit::Event,
        idempotency::{IdempotencyKey, Outcome, StoredReply},
        lookup::Ancestry,
    },
    kinds::{
        accounts::{Accounts, Session},
        tokens::Tokens,
    },
    runtime::{
        handle::Handle,
        owner::{Answer, Rider},
        resource::{Input, Resource},
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

/// Who calls.
#[derive(Clone, Default)]
pub struct Caller {
    /// The master key was presented.
    pub master: bool,
    /// The user, where a session or a token says who it is.
    pub user: Option<SignedIn>,
}

impl Caller {
    /// Whether a deploy token says who it is.
    pub fn is_token(&self) -> bool {
        matches!(&self.user, Some(SignedIn { credential: Credential::Token(..), .. }))
    }
}

/// A user, as a session or token proved.
#[derive(Clone)]
pub struct SignedIn {
    /// The user.
    pub id: UserId,
    /// The account, as it was read.
    pub account: Snapshot<Accounts>,
    /// How it was proved.
    pub credential: Credential,
}

/// How a user was proved.
#[derive(Clone)]
pub enum Credential {
    /// With a session; the key is the digest of its token.
    Session(String, Snapshot<Session>),
    /// With a deploy token.
    Token(TokenId, Snapshot<Tokens>),
}

/// One call.
#[derive(Clone)]
pub struct Call {
    /// The name of the function or endpoint.
    pub function: &'static str,
    /// Who calls.
    pub caller: Caller,
    /// Where from.
    pub address: IpAddr,
    /// In the reply's header and in the log.
    pub request_id: Arc<str>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// When it came.
    pub now: Timestamp,
    /// The object it is about, and what that hangs from.
    pub ancestry: Arc<Ancestry>,
    /// Under which its reply is stored.
    pub idempotency: Option<IdempotencyKey>,
    /// The reply holds a secret.
    pub secret: bool,
    /// A change makes what the reply tells of.
    pub creates: bool,
}

impl Call {
    /// The user, or a refusal for those who have none.
    pub fn user(&self) -> Result<&SignedIn, Fault> {
        let why = if self.caller.master {
            "this needs a person, and the master key alone is nobody: sign in with loginWithEmail"
        } else {
            "this needs a user: sign in with loginWithEmail"
        };
        self.caller.user.as_ref().ok_or_else(|| Fault::Unauthenticated(why.into()))
    }

    /// The user whose things a list shows; `None` for the master key alone, which sees everybody's.
    pub fn listed_user(&self) -> Result<Option<&SignedIn>, Fault> {
        match &self.caller {
            Caller { master: true, user: None } => Ok(None),
            _ => self.user().map(Some),
        }
    }

    /// The session, or a refusal for those who came without one.
    pub fn session(&self) -> Result<(&str, &Snapshot<Session>), Fault> {
        match &self.user()?.credential {
            Credential::Session(key, session) => Ok((key, session)),
            Credential::Token(..) => Err(Fault::Unauthenticated(
                "this needs a session: sign in with loginWithEmail".into(),
            )),
        }
    }

    /// How the caller proved who it is.
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

    /// Asks an owner for the change that this call is about, and makes the reply of the state
    /// after it. In the same transaction: the audit entry, the reply for a repetition, and that
    /// all the call was decided upon still holds.
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

    /// Like [`change`](Call::change), for a resource that is created by this call.
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

    /// What [`change`](Call::change) and [`create`](Call::create) do; also says whether it was this
    /// call that changed something.
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

    /// A stored reply that has ended and was not swept yet: it makes room for a new one.
    fn expired_reply(&self, world: &World) -> Result<Option<Snapshot<StoredReply>>, Fault> {
        let Some(key) = &self.idempotency else { return Ok(None) };
        let found = world.store.get::<StoredReply>(&key.key)?;
        Ok(found.filter(|stored| stored.expires_at <= self.now))
    }

    /// Stores the reply of a call that is the same however often it is done.
    pub fn keep(&self, world: &World, reply: &impl Serialize, created: bool) {
        let Some(key) = &self.idempotency else { return };
        if let (Ok(json), Ok(expired)) = (json(reply), self.expired_reply(world)) {
            let stored = key.stored(Outcome::reply(json, created), self.now);
            let change = Change::new();
            let change = change.replace::<StoredReply>(&key.key, expired.as_deref(), stored);
            world.store.note(change);
        }
    }

    /// Replaces the stored reply by a later one, of a change that took its time. Until that is
    /// written, a repetition is answered with the state at its beginning.
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

    /// Replaces the stored reply by the refusal of a change that was taken back.
    pub async fn take_back(&self, world: &World, fault: &Fault) {
        let Some(key) = &self.idempotency else { return };
        if let Ok(Some(before)) = world.store.get::<StoredReply>(&key.key) {
            let after = StoredReply { outcome: Outcome::refused(fault), ..(**before).clone() };
            let change =
                Change::new().replace::<StoredReply>(&key.key, Some(before.as_ref()), after);
            if let Err(e) = world.store.commit(change).await {
                tracing::warn!(error = %e, "a stored reply was not taken back");
            }
        }
    }

    /// Does something that is none of the store's, once for a request id. The id is taken before it
    /// begins: whoever repeats the call meanwhile, or after a crash, is told that it may have been
    /// done, and it is not done again.
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
        // Of two at the same moment, the second one finds what the first one took.
        world.store.commit(begin).await?;
        let done = work.await;
        // What was done is done, whatever becomes of its reply.
        let before = world.store.get::<StoredReply>(&key.key).ok().flatten();
        let Some(before) = before.as_deref() else { return done };
        let change = match &done {
            Ok(reply) => {
                let after = kept(Outcome::Reply(json(reply)?));
                Change::new().replace::<StoredReply>(&key.key, Some(before), after)
            }
            // Nothing was done, and may be tried again.
            Err(Fault::Unavailable(_)) => Change::new().remove::<StoredReply>(&key.key, before),
            Err(fault) if fault.is_final() => Change::new().replace::<StoredReply>(
                &key.key,
                Some(before),
                kept(Outcome::refused(fault)),
            ),
            Err(_) => return done,
        };
        if let Err(e) = world.store.commit(change).await {
            tracing::warn!(error = %e, "a reply was not kept");
        }
        done
    }

    /// Notes in the audit log what changed nothing in the store.
    pub fn note(&self, world: &World, resource: &str) {
        let event = self.event(world, resource);
        world.store.note(Change::new().append::<Event>(&event.0.id, &event));
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
