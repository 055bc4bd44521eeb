//! Webhooks: the service tells addresses of an organization what happens in it. The requests follow
//! the specification Standard Webhooks 1.0.0 (<https://www.standardwebhooks.com>).

use crate::{
    BoundedSet, DeliveryId, Description, MessageId, OrganizationId, Page, Patch, Timestamp, UserId,
    WebUrl, WebhookId, page::*,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The most event types of a list. More than there are.
const MOST: usize = 100;

functions! {
    group "Webhooks";

    /// Send the events of an organization to an address.
    ///
    /// Only this reply contains the secret, with which the receiver verifies the signatures. An
    /// organization has at most 20 webhooks.
    "svc_createWebhook": CreateWebhook {
        organization_id: OrganizationId,
        /// The address of the receiver. It must start with `https://` and be on the public internet,
        /// unless an operator allows its host.
        url: WebUrl,
        /// The default is all events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        events: Option<BoundedSet<EventType, 1, MOST>>,
        /// What people should know of the webhook, at most 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
    } -> WebhookWithSecret
    { who: OwnerOrAdmin of (organization_id), effect: Change, secret: true,
      errors: [NotNow "the organization has 20 webhooks"] }

    /// List the webhooks of an organization.
    "svc_getWebhooks": GetWebhooks {
        organization_id: OrganizationId,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Webhook> { who: OwnerOrAdmin of (organization_id), effect: Read }

    /// Read a webhook.
    "svc_getWebhook": GetWebhook { webhook_id: WebhookId } -> Webhook
    { who: OwnerOrAdmin of (webhook_id), effect: Read }

    /// Change a webhook.
    ///
    /// Deliveries that wait for another attempt go to the new address. A webhook that is enabled
    /// again gets the events from then on; earlier ones can be redelivered.
    "svc_updateWebhook": UpdateWebhook {
        webhook_id: WebhookId,
        /// The new address of the receiver, as in `svc_createWebhook`. Without it, the address
        /// stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<WebUrl>,
        /// Null means all events.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        events: Patch<BoundedSet<EventType, 1, MOST>>,
        /// Replaces the description. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
        /// Whether the webhook gets events from now on. Without it, this stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enabled: Option<bool>,
    } -> Webhook { who: OwnerOrAdmin of (webhook_id), effect: Change }

    /// Delete a webhook and its deliveries.
    "svc_deleteWebhook": DeleteWebhook { webhook_id: WebhookId } -> DeletedWebhook
    { who: OwnerOrAdmin of (webhook_id), effect: Change }

    /// Replace the secret of a webhook.
    ///
    /// Only this reply contains the new secret. For 24 hours, requests carry two signatures: one with
    /// the new secret and one with the previous secret.
    "svc_rotateWebhookSecret": RotateWebhookSecret { webhook_id: WebhookId } -> WebhookWithSecret
    { who: OwnerOrAdmin of (webhook_id), effect: Change, secret: true }

    /// Send an event of the type `webhook.test`, with one attempt.
    ///
    /// A disabled webhook is tested too. Read the delivery again to see its outcome.
    "svc_testWebhook": TestWebhook { webhook_id: WebhookId } -> WebhookDelivery
    { who: OwnerOrAdmin of (webhook_id), effect: Change }

    /// List the deliveries of a webhook, without their payloads.
    ///
    /// They are kept for 30 days after their end, unless the retention of the server says otherwise.
    "svc_getWebhookDeliveries": GetWebhookDeliveries {
        webhook_id: WebhookId,
        /// Return only deliveries in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<DeliveryState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<WebhookDelivery> { who: OwnerOrAdmin of (webhook_id), effect: Read }

    /// Read a delivery, with its payload.
    "svc_getWebhookDelivery": GetWebhookDelivery { delivery_id: DeliveryId } -> WebhookDelivery
    { who: OwnerOrAdmin of (delivery_id), effect: Read }

    /// Deliver an event once more: the same bytes with the same `webhook-id`, as a new delivery.
    "svc_redeliverWebhook": RedeliverWebhook { delivery_id: DeliveryId } -> WebhookDelivery
    { who: OwnerOrAdmin of (delivery_id), effect: Change,
      errors: [NotNow "the delivery has not ended, or the webhook is disabled"] }
}

macro_rules! event_types {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal),+ $(,)?) => {
        /// The type of an event. The part before the dot is the noun of the record that the event
        /// contains.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum EventType {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant),+
        }

        impl EventType {
            /// All types, in the order of the documents.
            pub const ALL: &[EventType] = &[$(EventType::$variant),+];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(EventType::$variant => $name),+
                }
            }

            /// When such an event happens, in a sentence.
            pub fn summary(self) -> &'static str {
                match self {
                    $(EventType::$variant => concat!($($doc),+).trim()),+
                }
            }
        }
    };
}

event_types! {
    /// The file of an artifact was verified.
    ArtifactVerified = "artifact.verified",
    /// The file of an artifact is not what was declared. `problem` says why.
    ArtifactRejected = "artifact.rejected",
    /// A build runs.
    BuildStarted = "build.started",
    /// A build made an artifact, which is verified.
    BuildSucceeded = "build.succeeded",
    /// A build failed. `error` says why.
    BuildFailed = "build.failed",
    /// A build was cancelled.
    BuildCancelled = "build.cancelled",
    /// A build did not begin or did not end in time.
    BuildTimedOut = "build.timedOut",
    /// A release is current in its channel, and all its targets accepted it.
    ReleasePublished = "release.published",
    /// Users get a release from some targets; others refused it or are not that far.
    ReleasePartiallyPublished = "release.partiallyPublished",
    /// All targets of a release refused it.
    ReleaseFailed = "release.failed",
    /// A later release is current.
    ReleaseSuperseded = "release.superseded",
    /// A release was rolled back.
    ReleaseRolledBack = "release.rolledBack",
    /// A store reviews a publication, or an approved version waits there.
    PublicationInReview = "publication.inReview",
    /// Users or testers can get a publication.
    PublicationLive = "publication.live",
    /// A publication was halted or withdrawn.
    PublicationHalted = "publication.halted",
    /// A store refused a publication. `error` says why.
    PublicationFailed = "publication.failed",
    /// A credential was stored, or replaced.
    CredentialStored = "credential.stored",
    /// A credential expires within 30, 7 or 1 days.
    CredentialExpiring = "credential.expiring",
    /// A check found that a credential does not open what it is for. `check` says why.
    CredentialCheckFailed = "credential.checkFailed",
    /// The money of a checkout arrived, and is what was to be paid.
    CheckoutPaid = "checkout.paid",
    /// A paid checkout is done: the order in the shop is marked as paid, or the subscription began.
    CheckoutSettled = "checkout.settled",
    /// A paid checkout cannot be settled. The service keeps trying. `problem` says why.
    CheckoutNotSettled = "checkout.notSettled",
    /// Money arrived for a checkout, but not what was to be paid. A person has to decide.
    CheckoutAmountMismatch = "checkout.amountMismatch",
    /// A checkout could not begin, or an attempt to pay failed. `problem` says why.
    CheckoutFailed = "checkout.failed",
    /// Nobody paid a checkout, and nobody can any more.
    CheckoutExpired = "checkout.expired",
    /// Money of a checkout went back to the buyer.
    CheckoutRefunded = "checkout.refunded",
    /// The bank of a buyer asks for the money of a checkout back, or has decided. See `dispute`.
    CheckoutDisputed = "checkout.disputed",
    /// A subscription is paid.
    SubscriptionActive = "subscription.active",
    /// A subscription ends with the paid period.
    SubscriptionEnding = "subscription.ending",
    /// A renewal of a subscription failed. `renewalFailure` says why.
    SubscriptionRenewalFailed = "subscription.renewalFailed",
    /// A subscription is over.
    SubscriptionEnded = "subscription.ended",
    /// The turn of a deployment has come.
    DeploymentStarted = "deployment.started",
    /// A deployment serves.
    DeploymentLive = "deployment.live",
    /// A deployment failed. The previous version serves. `error` says why.
    DeploymentFailed = "deployment.failed",
    /// A deployment was cancelled before it served.
    DeploymentCancelled = "deployment.cancelled",
    /// A deployment served and was rolled back.
    DeploymentRolledBack = "deployment.rolledBack",
    /// All services of an instance are healthy.
    InstanceRunning = "instance.running",
    /// An instance runs, but a service is not healthy.
    InstanceDegraded = "instance.degraded",
    /// An instance was stopped.
    InstanceStopped = "instance.stopped",
    /// An instance did not start or did not stay up. `lastError` says why.
    InstanceFailed = "instance.failed",
    /// A security advisory concerns an image of an instance. `outdated` of its services says more.
    /// Each advisory is told once.
    InstanceOutdated = "instance.outdated",
    /// An instance was deleted.
    InstanceDeleted = "instance.deleted",
    /// Somebody tests the webhook. It is sent whatever events the webhook wants.
    WebhookTest = "webhook.test",
}

impl EventType {
    /// The noun of the record in the event's data, such as `artifact`.
    pub fn noun(self) -> &'static str {
        self.name().split_once('.').map_or(self.name(), |(noun, _)| noun)
    }
}

impl std::fmt::Display for EventType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl JsonSchema for EventType {
    fn schema_name() -> Cow<'static, str> {
        "WebhookEventType".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let types = EventType::ALL.iter();
        let choices: Vec<_> = types
            .map(|event| json_schema!({"const": event.name(), "description": event.summary()}))
            .collect();
        json_schema!({"type": "string", "description": "The type of an event.", "oneOf": choices})
    }
}

records! {
    /// A webhook, without its secret.
    pub struct Webhook {
        id: WebhookId,
        organization_id: OrganizationId,
        /// The address that gets the events.
        url: WebUrl,
        /// What people should know of the webhook. Null if nobody wrote it.
        description: Option<Description>,
        /// The events that it gets. Null means all.
        events: Option<Vec<EventType>>,
        /// Whether the webhook gets events. The service disables it if the receiver is gone, or
        /// fails for days.
        enabled: bool,
        /// Why the service disabled it.
        disabled_reason: Option<String>,
        /// Since when no attempt succeeded. Null if the last one did. After five days, the service
        /// disables the webhook.
        failing_since: Option<Timestamp>,
        /// Until when requests also carry a signature with the previous secret.
        previous_secret_until: Option<Timestamp>,
        /// The id of the user who made it. Null if the master key alone made it.
        created_by: Option<UserId>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A webhook with its new secret.
    pub struct WebhookWithSecret {
        /// The webhook, as lists show it.
        webhook: Webhook,
        /// `whsec_`, followed by the key in base64. Libraries of Standard Webhooks take it as it is.
        secret: String,
    }

    /// The webhook that the call deleted.
    pub struct DeletedWebhook { deleted: WebhookId }

    /// The delivery of one event to one webhook.
    pub struct WebhookDelivery {
        id: DeliveryId,
        webhook_id: WebhookId,
        /// The header `webhook-id` of every attempt. All deliveries of one event have the same.
        message_id: MessageId,
        /// The type of the event.
        event: EventType,
        /// Where the delivery stands. `succeeded` and `failed` are final.
        state: DeliveryState,
        /// The requests that were made so far, the oldest first.
        attempts: Vec<DeliveryAttempt>,
        /// When the attempt after a failed one begins. Null after the end.
        next_attempt_at: Option<Timestamp>,
        /// Why there is no further attempt, if none succeeded.
        error: Option<String>,
        /// The delivery that this one repeats.
        redelivery_of: Option<DeliveryId>,
        /// The body of the requests. Null in lists.
        payload: Option<String>,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// One request to the receiver.
    pub struct DeliveryAttempt {
        at: Timestamp,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// The HTTP status of the reply. Null without a reply.
        status: Option<u16>,
        /// Why the attempt failed.
        error: Option<String>,
        /// The first 1024 bytes of the reply.
        reply: Option<String>,
    }
}

/// Where a delivery stands. `succeeded` and `failed` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeliveryState {
    /// An attempt is under way, or another one follows.
    Pending,
    /// The receiver accepted the event with a status from 200 to 299.
    Succeeded,
    /// No attempt succeeded, and none follows.
    Failed,
}

/// The Markdown table of all event types, for the documents.
pub fn table() -> String {
    let rows = EventType::ALL.iter().map(|event| {
        format!("| `{}` | {} | `{}` |\n", event.name(), event.summary(), event.noun())
    });
    let head = "| type | when | record in `data` |\n|---|---|---|\n".to_owned();
    std::iter::once(head).chain(rows).collect()
}
