//! The organizations that have webhooks, in memory: a change in any other organization writes and
//! reads nothing more than without webhooks.

use super::{receiver_turns::ReceiverTurns, rules::Webhooks};
use crate::runtime::store::Store;
use contract::{Fault, OrganizationId, WebhookId};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        PoisonError, RwLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
};
use tokio::sync::Notify;

/// Who hears of events. An organization may be here without a webhook, because the creation of its
/// webhook failed; its events then go from the outbox to nobody. The other way round never happens.
pub struct Subscribers {
    webhooks: RwLock<HashMap<OrganizationId, HashSet<WebhookId>>>,
    /// Whether there are any, for the changes of an installation without webhooks.
    any: AtomicBool,
    /// Told when an event was written.
    pub(crate) news: Notify,
    pub(crate) turns: ReceiverTurns,
    /// How many deliveries were not made, because too many of their organization waited.
    dropped: AtomicU64,
}

impl Default for Subscribers {
    fn default() -> Self {
        Subscribers {
            webhooks: RwLock::default(),
            any: AtomicBool::new(false),
            news: Notify::new(),
            turns: ReceiverTurns::default(),
            dropped: AtomicU64::new(0),
        }
    }
}

impl Subscribers {
    /// Whether no organization has a webhook.
    pub fn is_empty(&self) -> bool {
        !self.any.load(SeqCst)
    }

    pub fn has(&self, organization: OrganizationId) -> bool {
        let webhooks = self.webhooks.read().unwrap_or_else(PoisonError::into_inner);
        webhooks.contains_key(&organization)
    }

    /// Called before a webhook is written, so that no event after it is missed.
    pub fn add(&self, organization: OrganizationId, id: WebhookId) {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        webhooks.entry(organization).or_default().insert(id);
        self.any.store(true, SeqCst);
    }

    /// Called when a webhook is gone.
    pub(super) fn remove(&self, organization: OrganizationId, id: WebhookId) {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_organization) = webhooks.get_mut(&organization) {
            of_organization.remove(&id);
            if of_organization.is_empty() {
                webhooks.remove(&organization);
            }
        }
        self.any.store(!webhooks.is_empty(), SeqCst);
    }

    /// Counts a delivery that is not made, because too many of the organization wait.
    pub(crate) fn drop_delivery(&self, organization: OrganizationId) {
        // Not one line for each: there may be many.
        if self.dropped.fetch_add(1, Relaxed).is_multiple_of(1_000) {
            tracing::warn!(%organization, "too many deliveries wait; those of new events are dropped");
        }
    }

    /// How many deliveries were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Adds the webhooks of the store.
    pub(crate) fn read(&self, store: &Store) -> Result<(), Fault> {
        for id in store.whole::<Webhooks>(None).keys() {
            let id = id?;
            // The store says which record it cannot read. The others count.
            if let Ok(Some(webhook)) = store.get::<Webhooks>(&id) {
                self.add(webhook.organization_id, id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    #[test]
    fn an_organization_is_known_until_its_last_webhook_goes() {
        let subscribers = Subscribers::default();
        let (acme, other) = (OrganizationId::of(Ulid(1)), OrganizationId::of(Ulid(2)));
        let [first, second] = [3, 4].map(|n| WebhookId::of(Ulid(n)));
        assert!(subscribers.is_empty());
        subscribers.add(acme, first);
        subscribers.add(acme, second);
        subscribers.add(acme, second);
        assert!(subscribers.has(acme) && !subscribers.has(other) && !subscribers.is_empty());
        subscribers.remove(acme, second);
        subscribers.remove(other, first);
        assert!(subscribers.has(acme) && !subscribers.is_empty());
        subscribers.remove(acme, first);
        assert!(!subscribers.has(acme) && subscribers.is_empty());
    }
}
