//! The rules of a webhook: a rotated secret is valid for another day, and a webhook whose receiver
//! is gone, or fails for days, is disabled.

use crate::{
    kinds::world::World,
    ports::sealed::Sealed,
    runtime::{
        resource::{Child, Kept, Moment, Resource, Step, without_effects},
        uses::Uses,
    },
};
use contract::{
    Description, Fault, OrganizationId, Patch, Timestamp, UserId, WebUrl, WebhookId, quotas::Quota,
    webhooks::EventType,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use store::Entries;

#[derive(Debug, Clone, Copy)]
pub struct Webhooks;

/// How long the previous secret still signs after a rotation.
pub const PREVIOUS_SIGNS: Duration = Duration::from_secs(24 * 3600);
/// A webhook that fails for this long is disabled.
pub const FAILS_AT_MOST: Duration = Duration::from_secs(5 * 24 * 3600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    pub organization_id: OrganizationId,
    pub url: WebUrl,
    pub description: Option<Description>,
    /// `None`: all events.
    pub events: Option<Vec<EventType>>,
    pub enabled: bool,
    /// Why the service disabled the webhook.
    pub disabled_reason: Option<String>,
    /// The first failed attempt since the last one that succeeded.
    pub failing_since: Option<Timestamp>,
    /// Sealed for the id of the webhook.
    pub secret: Sealed,
    pub previous_secret: Option<PreviousSecret>,
    pub created_by: Option<UserId>,
    /// The maker's token epoch at creation.
    #[serde(default)]
    pub maker_epoch: u32,
    pub created_at: Timestamp,
    /// When a command of a caller last changed the webhook.
    pub updated_at: Timestamp,
}

/// A secret that was replaced, and still signs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub secret: Sealed,
    pub until: Timestamp,
}

#[derive(Debug, Clone)]
pub enum Command {
    Update {
        url: Option<WebUrl>,
        events: Patch<Vec<EventType>>,
        description: Patch<Description>,
        enabled: Option<bool>,
    },
    /// Replace the secret.
    Rotate(Sealed),
    /// An attempt failed.
    Failing,
    /// An attempt succeeded.
    Working,
    /// Send nothing more, for this reason.
    Disable(String),
    Delete,
}

impl Webhook {
    /// Whether it gets such an event.
    pub fn wants(&self, event: EventType) -> bool {
        let chosen = self.events.as_ref().is_none_or(|events| events.contains(&event));
        self.enabled && chosen
    }

    /// The secrets that sign at this time, the current one first.
    pub fn secrets(&self, now: Timestamp) -> impl Iterator<Item = &Sealed> {
        let previous = self.previous_secret.as_ref().filter(|previous| now < previous.until);
        std::iter::once(&self.secret).chain(previous.map(|previous| &previous.secret))
    }

    fn disable(mut self, reason: String) -> Step<Webhooks> {
        if !self.enabled {
            return Step::keep();
        }
        self.enabled = false;
        self.disabled_reason = Some(reason);
        Step::put(self)
    }
}

store::entries! {
    /// The index entries of webhooks.
    pub enum WebhookIndex of Webhooks {
        /// The enabled webhooks that a user made.
        EnabledOfMaker { user: UserId } = "enabledOfMaker",
    }
}

impl Resource for Webhooks {
    const INDEX: u16 = 3;
    type New = Webhook;
    type State = Webhook;
    type Command = Command;
    without_effects!();

    fn uses(_: &Webhook) -> Uses {
        Uses::one(Quota::Webhooks)
    }

    fn create(_: &Moment<Self>, webhook: Webhook) -> Result<Step<Self>, Fault> {
        Ok(Step::put(webhook))
    }

    fn on_command(
        mut webhook: Webhook,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        match command {
            Command::Update { url, events, description, enabled } => {
                if let Some(url) = url {
                    (webhook.url, webhook.failing_since) = (url, None);
                }
                events.apply(&mut webhook.events);
                description.apply(&mut webhook.description);
                if let Some(enabled) = enabled {
                    webhook.enabled = enabled;
                    (webhook.disabled_reason, webhook.failing_since) = (None, None);
                }
            }
            Command::Rotate(secret) => {
                let secret = std::mem::replace(&mut webhook.secret, secret);
                let until = at.now + PREVIOUS_SIGNS;
                webhook.previous_secret = Some(PreviousSecret { secret, until });
            }
            Command::Failing => {
                let since = *webhook.failing_since.get_or_insert(at.now);
                return Ok(if at.now.since(since) >= FAILS_AT_MOST {
                    webhook.disable("no attempt succeeded for five days".into())
                } else if since == at.now {
                    Step::put(webhook)
                } else {
                    Step::keep()
                });
            }
            Command::Working if webhook.failing_since.is_none() => return Ok(Step::keep()),
            Command::Working => {
                webhook.failing_since = None;
                return Ok(Step::put(webhook));
            }
            Command::Disable(reason) => return Ok(webhook.disable(reason)),
            Command::Delete => {
                // It wants nothing any more.
                webhook.enabled = false;
                return Ok(Step::delete(webhook));
            }
        }
        webhook.updated_at = at.now;
        Ok(Step::put(webhook))
    }

    /// Earlier versions had one effect, for webhooks that were being deleted.
    fn adopt(kept: &mut Kept<Self>, _: &Value) {
        (kept.deleting, kept.state.enabled) = (true, false);
    }

    fn index(webhook: &Webhook) -> Entries<Self> {
        let maker = webhook.created_by.filter(|_| webhook.enabled);
        let entry = maker.map(|user| WebhookIndex::EnabledOfMaker { user });
        Entries::default().and_all(entry)
    }

    fn removed(id: WebhookId, webhook: &Webhook, world: &World) {
        world.webhooks.remove(webhook.organization_id, id);
    }
}

impl Child for Webhooks {
    fn parent(webhook: &Webhook) -> Option<OrganizationId> {
        Some(webhook.organization_id)
    }

    fn delete() -> Command {
        Command::Delete
    }
}
