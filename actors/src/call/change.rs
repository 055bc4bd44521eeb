//! What a call changes. One transaction writes the change, its audit entry and the stored reply, and
//! requires that the ancestors of the object are as they were read.

use super::{
    context::Call,
    idempotency::{Outcome, StoredReply},
    replies::json,
};
use crate::{
    kinds::table::Owned,
    runtime::{
        audit::Event,
        messages::{OwnerReply, Rider},
        resource::{Input, StateOf},
    },
};
use contract::{
    Fault, OrganizationId,
    operators::{AuditEvent, Via},
};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use store::Change;

impl Call {
    /// A resource that this call creates or changes.
    pub fn to<R: Owned>(&self, id: R::Key) -> CallTo<'_, R> {
        CallTo { call: self, id }
    }

    /// Writes an audit entry for a call that changes no record. The call does not wait for it.
    pub fn note(&self, resource: &str) {
        let event = self.event(resource);
        self.world.store.note(Change::new().append::<Event>(&event.0.id, &event));
    }

    /// Writes an audit entry before a secret is shown. Returns when it is durable.
    pub async fn record(&self, resource: &str) -> Result<(), Fault> {
        let event = self.event(resource);
        self.world.store.commit(Change::new().append::<Event>(&event.0.id, &event)).await
    }

    /// The organization that an object of this call belongs to, or that it is. What strangers do, such as to
    /// open a checkout, is no activity of its members.
    fn organization_of(&self, resource: &str) -> Option<OrganizationId> {
        if self.via() == Via::Nobody {
            return None;
        }
        let found = self.ancestry.organization.as_ref().map(|(id, _)| *id);
        found.or_else(|| resource.parse().ok())
    }

    fn event(&self, resource: &str) -> Event {
        Event(AuditEvent {
            id: self.world.ports.random.id(self.now),
            at: self.now,
            function: self.function.to_owned(),
            user_id: self.caller.user.as_ref().map(|user| user.id),
            via: self.via(),
            address: self.address.to_string(),
            resource: resource.to_owned(),
            organization_id: self.organization_of(resource),
            project_id: self.ancestry.project.as_ref().map(|(id, _)| *id).or(resource.parse().ok()),
            request_id: self.request_id.to_string(),
        })
    }
}

/// A call to the owner of a resource. A `reply` makes the reply of the call from the state of the
/// resource.
pub struct CallTo<'a, R: Owned> {
    call: &'a Call,
    id: R::Key,
}

impl<R: Owned> Clone for CallTo<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Owned> Copy for CallTo<'_, R> {}

impl<R: Owned> CallTo<'_, R> {
    /// Sends a command, and makes the reply from the state after it. It is refused with
    /// [`Fault::Stale`] if an ancestor of the object changed since it was read.
    pub async fn change<T, F>(self, command: R::Command, reply: F) -> Result<T, Fault>
    where
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let decided = self.decide(Input::Command(command), reply.clone()).await?;
        reply(&decided.state)
    }

    /// Like [`change`](CallTo::change), for a resource that this call creates.
    pub async fn create<T, F>(self, new: R::New, reply: F) -> Result<T, Fault>
    where
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let decided = self.decide(Input::Create(Box::new(new)), reply.clone()).await?;
        reply(&decided.state)
    }

    /// Like [`change`](CallTo::change) or [`create`](CallTo::create), as the input says, for a call
    /// that looked up whether there is such a resource. If it ended meanwhile, the call is decided
    /// again, and creates a new one.
    pub async fn change_or_create<T, F>(self, input: Input<R>, reply: F) -> Result<T, Fault>
    where
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let decided = self.decide(input, reply.clone()).await;
        let decided = decided.map_err(|fault| match fault {
            Fault::NotFound(_) => Fault::Stale,
            fault => fault,
        })?;
        reply(&decided.state)
    }

    /// Like [`change`](CallTo::change), and waits for the work that the command begins.
    pub async fn change_and_wait<T, F>(
        self,
        command: R::Command,
        within: Duration,
        reply: F,
    ) -> Result<T, Fault>
    where
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Clone + Send + Sync + 'static,
    {
        let begun = self.change(command, reply.clone()).await?;
        self.when_idle(within, begun, reply).await
    }

    /// The reply at the end of a change whose work goes on after it: from the state when the resource is
    /// idle, or from the state as it is after this time. It replaces the stored reply. If the state cannot be
    /// read, the reply is the one from the beginning of the change, which was made.
    pub async fn when_idle<T: Serialize>(
        self,
        within: Duration,
        begun: T,
        reply: impl Fn(&R::State) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let reply = match self.call.world.to::<R>(self.id).idle_or_late(within).await {
            Ok(state) => reply(&state)?,
            Err(gone @ Fault::NotFound(_)) => return Err(gone),
            Err(_) => begun,
        };
        self.call.finish(&reply).await;
        Ok(reply)
    }

    /// Sends an input. The owner's reply also says whether it changed the record.
    pub async fn decide<T, F>(self, input: Input<R>, reply: F) -> Result<OwnerReply<R>, Fault>
    where
        T: Serialize,
        F: Fn(&R::State) -> Result<T, Fault> + Send + Sync + 'static,
    {
        let (call, key) = (self.call, self.id.to_string());
        let event = call.event(&key);
        let (ancestry, idempotency) = (call.ancestry.clone(), call.idempotency.clone());
        let (secret, creates, now) = (call.secret, call.creates, call.now);
        let expired = call.expired_reply()?;
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
        call.world.to::<R>(self.id).ask_with(input, rider).await
    }

    /// Sends an input to one of several owners, or to an owner whose reply comes later. The reply is not
    /// stored, so a repeated call sends the input again.
    pub async fn tell(self, input: Input<R>) -> Result<StateOf<R>, Fault> {
        let (call, key) = (self.call, self.id.to_string());
        let (event, ancestry) = (call.event(&key), call.ancestry.clone());
        let rider: Rider<R> = Arc::new(move |_| {
            Ok(ancestry.require(Change::new(), &key).append::<Event>(&event.0.id, &event))
        });
        Ok(call.world.to::<R>(self.id).ask_with(input, rider).await?.state)
    }
}
