//! Ends what an account left behind that works without it: trusted publishers, and webhooks.
//!
//! Sessions and deploy tokens end with the epochs of the account, at once. These are records of
//! others, so they end one after the other, each with an entry in the audit log.

use super::{
    record::Cause,
    rules::{Accounts, Effect, Outcome},
};
use crate::{
    kinds::{
        delivery::trusted_publishers::{self, TrustedPublisherIndex, TrustedPublishers},
        events::webhooks::{self, WebhookIndex, Webhooks},
        table::Owned,
        world::World,
    },
    runtime::{
        audit::Event,
        messages::Rider,
        resource::{Input, Resource, Retry},
    },
};
use contract::{
    Fault, UserId,
    operators::{AuditEvent, Via},
};
use std::sync::Arc;
use store::{Change, Entry, Snapshot};

/// What a webhook says that was disabled.
const DISABLED: &str = "its maker's password was replaced and all that acts for the account was ended: check the address, then enable it";

pub(super) async fn perform(
    Effect::EndReach(cause): Effect,
    id: UserId,
    account: Snapshot<Accounts>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let epoch = account.token_epoch;
    let reach = Reach { world: &world, user: id, cause };
    let made = TrustedPublisherIndex::Maker { user: id };
    let is_earlier = |publisher: &trusted_publishers::Publisher| publisher.maker_epoch < epoch;
    let remove = trusted_publishers::Command::Remove;
    reach.end::<TrustedPublishers>(&made, is_earlier, remove).await?;
    let made = WebhookIndex::EnabledOfMaker { user: id };
    let is_earlier = |webhook: &webhooks::Webhook| webhook.maker_epoch < epoch;
    let disable = webhooks::Command::Disable(DISABLED.into());
    reach.end::<Webhooks>(&made, is_earlier, disable).await?;
    Ok(Outcome::ReachEnded)
}

/// Ends what a user made, because of one call.
struct Reach<'a> {
    world: &'a World,
    user: UserId,
    cause: Cause,
}

impl Reach<'_> {
    /// Sends the command to the resources with this entry that were made before the deploy tokens
    /// ended. It takes them out of the entry, so a repetition after a crash goes on with the rest.
    async fn end<R: Owned>(
        &self,
        made: &impl Entry<R>,
        is_earlier: impl Fn(&R::State) -> bool,
        command: R::Command,
    ) -> Result<(), Retry> {
        let mut list = self.world.store.newest::<R>(made, None);
        while let Some(page) = list.next_keys().await? {
            for id in page {
                let seen = self.world.store.get::<R>(&id)?;
                if !seen.is_some_and(|seen| is_earlier(&seen.state)) {
                    continue;
                }
                let input = Input::Command(command.clone());
                let entry = self.audit_entry::<R>(&id.to_string());
                match self.world.to::<R>(id).ask_with(input, entry).await {
                    Ok(_) | Err(Fault::NotFound(_)) => {}
                    Err(fault) => return Err(fault.into()),
                }
            }
        }
        Ok(())
    }

    /// Writes the entry of the audit log together with the change of a resource.
    fn audit_entry<R: Resource>(&self, resource: &str) -> Rider<R> {
        let ports = &self.world.ports;
        let now = ports.clock.now();
        let event = Event(AuditEvent {
            id: ports.random.id(now),
            at: now,
            function: self.cause.function.clone(),
            user_id: Some(self.user),
            via: Via::Service,
            address: String::new(),
            resource: resource.to_owned(),
            organization_id: None,
            project_id: None,
            request_id: self.cause.request_id.clone(),
        });
        Arc::new(move |_| Ok(Change::new().append::<Event>(&event.0.id, &event)))
    }
}
