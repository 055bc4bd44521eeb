//! The commands about webhooks.

use crate::values::one_of;
use clap::Subcommand;
use contract::{
    DeliveryId, Description, OrganizationId, WebUrl, WebhookId,
    webhooks::{DeliveryState, EventType},
};

/// `svc webhook`.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Send the events of an organization to an address; the secret is shown only once
    Create {
        /// The address of the receiver
        url: WebUrl,
        /// The id of the organization (org_…)
        #[arg(long)]
        organization: OrganizationId,
        /// An event that it gets; repeat it for each. By default all
        #[arg(long, value_delimiter = ',', value_parser = one_of::<EventType>())]
        event: Vec<EventType>,
        /// What the webhook is for
        #[arg(long)]
        description: Option<Description>,
    },
    /// List the webhooks of an organization
    List {
        /// The id of the organization (org_…)
        #[arg(long)]
        organization: OrganizationId,
        /// List all, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// Show a webhook
    Show {
        /// The id of the webhook (whk_…)
        webhook: WebhookId,
    },
    /// Change a webhook
    Update {
        /// The id of the webhook (whk_…)
        webhook: WebhookId,
        /// The new address
        #[arg(long)]
        url: Option<WebUrl>,
        /// An event that it gets from now on; repeat it for each
        #[arg(long, value_delimiter = ',', value_parser = one_of::<EventType>(), conflicts_with = "all_events")]
        event: Vec<EventType>,
        /// From now on it gets all events
        #[arg(long)]
        all_events: bool,
        /// What the webhook is for
        #[arg(long)]
        description: Option<Description>,
        /// Send events again
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Send no events
        #[arg(long)]
        disable: bool,
    },
    /// Delete a webhook and its deliveries
    Delete {
        /// The id of the webhook (whk_…)
        webhook: WebhookId,
    },
    /// Replace the secret of a webhook; the new one is shown only once
    Rotate {
        /// The id of the webhook (whk_…)
        webhook: WebhookId,
    },
    /// Send a test event, and wait for the answer of the receiver
    Test {
        /// The id of the webhook (whk_…)
        webhook: WebhookId,
    },
    /// List the deliveries of a webhook, or show one of them
    Deliveries {
        /// The id of the webhook (whk_…)
        #[arg(required_unless_present = "delivery", conflicts_with = "delivery")]
        webhook: Option<WebhookId>,
        /// Show this delivery, with its attempts
        #[arg(long, value_name = "ID")]
        delivery: Option<DeliveryId>,
        /// List only deliveries in this state
        #[arg(long, value_parser = one_of::<DeliveryState>())]
        state: Option<DeliveryState>,
        /// List all, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// Deliver an event once more
    Redeliver {
        /// The delivery, as in `svc webhook deliveries`
        delivery: DeliveryId,
    },
}
