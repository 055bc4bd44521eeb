//! The turns of requests to receivers. Tenants share them, and a slow receiver holds the turns of its own
//! webhook only.

use crate::runtime::turns::{NoTurn, Tenant, Turn, Turns, Waiting};
use contract::{Id, MessageId, WebhookId};

/// How many requests to receivers are under way at most. Each holds a connection.
const AT_A_TIME: usize = 512;
/// How many of them are of one tenant.
const OF_TENANT: usize = 64;
/// How many of them go to one webhook.
const OF_WEBHOOK: usize = 8;

pub(crate) struct ReceiverTurns {
    all: Turns<Tenant>,
    of_webhook: Turns<WebhookId>,
    /// First attempts to a webhook begin one after the other, in the order of their events.
    begin: Turns<WebhookId>,
}

/// A request may be under way until this is dropped.
pub(crate) struct ReceiverTurn {
    _of_all: Turn<Tenant>,
    _of_webhook: Turn<WebhookId>,
    /// The next first attempt to the webhook begins when this is dropped.
    pub beginning: Option<Turn<WebhookId>>,
}

impl Default for ReceiverTurns {
    fn default() -> Self {
        ReceiverTurns {
            all: Turns::new(AT_A_TIME, OF_TENANT),
            of_webhook: Turns::apart(OF_WEBHOOK),
            begin: Turns::apart(1),
        }
    }
}

impl ReceiverTurns {
    /// Waits for the turn of an attempt. `first`: the event, if this is its first attempt.
    pub async fn take(
        &self,
        tenant: Tenant,
        webhook: WebhookId,
        first: Option<MessageId>,
    ) -> Result<ReceiverTurn, NoTurn> {
        let beginning = match first {
            Some(event) => Some(self.begin.ask(webhook, event.unique().0)?.await),
            None => None,
        };
        let _of_webhook = self.of_webhook.take(webhook).await?;
        let _of_all = self.all.take(tenant).await?;
        Ok(ReceiverTurn { _of_all, _of_webhook, beginning })
    }

    /// Lets no first attempt to a webhook begin until this is dropped, so that those of several
    /// events can come together and be put in order.
    pub fn hold_back(&self, webhook: WebhookId) -> Result<Waiting<WebhookId>, NoTurn> {
        self.begin.ask(webhook, 0)
    }
}
