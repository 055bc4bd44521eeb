//! The stored replies of calls with an idempotency key.

use super::{
    context::Call,
    idempotency::{Outcome, StoredReply},
};
use contract::Fault;
use serde::Serialize;
use store::{Change, Snapshot};

impl Call {
    /// An expired stored reply that the sweeper has not removed yet. The new reply replaces it.
    pub(super) fn expired_reply(&self) -> Result<Option<Snapshot<StoredReply>>, Fault> {
        let Some(key) = &self.idempotency else { return Ok(None) };
        let found = self.world.store.get::<StoredReply>(&key.key)?;
        Ok(found.filter(|stored| stored.expires_at <= self.now))
    }

    /// Stores the reply of a call that is safe to repeat.
    pub async fn keep(&self, reply: &impl Serialize, created: bool) {
        let Some(key) = &self.idempotency else { return };
        if let (Ok(json), Ok(expired)) = (json(reply), self.expired_reply()) {
            let stored = key.stored(Outcome::reply(json, created), self.now);
            let change = Change::new();
            let change = change.replace::<StoredReply>(&key.key, expired.as_deref(), stored);
            self.world.store.note_for_others(change).await;
        }
    }

    /// Replaces the stored reply at the end of a long change. Until then, a repeated call gets the
    /// reply from the beginning of the change.
    pub async fn finish(&self, reply: &impl Serialize) {
        let Some(key) = &self.idempotency else { return };
        if let (Ok(Some(before)), Ok(json)) =
            (self.world.store.get::<StoredReply>(&key.key), json(reply))
        {
            let after = StoredReply { outcome: Outcome::Reply(json), ..(**before).clone() };
            let change =
                Change::new().replace::<StoredReply>(&key.key, Some(before.as_ref()), after);
            self.world.store.note_for_others(change).await;
        }
    }

    /// Replaces the stored reply with the refusal of a change that was taken back.
    pub async fn take_back(&self, fault: &Fault) {
        let Some(key) = &self.idempotency else { return };
        if let Ok(Some(before)) = self.world.store.get::<StoredReply>(&key.key) {
            let after = StoredReply { outcome: Outcome::refused(fault), ..(**before).clone() };
            let change =
                Change::new().replace::<StoredReply>(&key.key, Some(before.as_ref()), after);
            if let Err(e) = self.world.store.commit(change).await {
                tracing::warn!(error = %e, "a stored reply was not replaced by the refusal");
            }
        }
    }

    /// Runs work outside of the store once for each idempotency key. The key is stored before the
    /// work begins: a call that is repeated meanwhile, or after a crash, learns that the work may
    /// have been done, and does not run it again.
    pub async fn do_once<T: Serialize>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let Some(key) = &self.idempotency else { return work.await };
        let kept = |outcome| key.stored(outcome, self.now);
        let expired = self.expired_reply()?;
        let begun = kept(Outcome::refused(&Fault::NoAnswer("the first call with this request id")));
        let begin = self.ancestry.require(Change::new(), "");
        let begin = begin.replace::<StoredReply>(&key.key, expired.as_deref(), begun);
        // Of two calls at the same moment, the second is stale here and then finds this reply.
        self.world.store.commit(begin).await?;
        let done = work.await;
        // The work is done, so a failure of the store must not fail the call.
        let before = self.world.store.get::<StoredReply>(&key.key).ok().flatten();
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
        if let Err(e) = self.world.store.commit(change).await {
            tracing::warn!(error = %e, "a reply was not stored");
        }
        done
    }
}

pub(super) fn json(reply: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(reply).map_err(|_| Fault::Internal)
}
