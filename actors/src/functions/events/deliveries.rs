//! The handlers of the group Webhooks that are about deliveries.

use super::webhooks::view;
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        events::{
            deliveries::{Deliveries, MOST_WAITING, New, State, is_room},
            webhooks::outbox,
        },
        world::World,
    },
    runtime::pagination,
};
use contract::{
    DeliveryId, Fault, OrganizationId, Page, Serves,
    webhooks::{
        DeliveryState, EventType, GetWebhookDeliveries, GetWebhookDelivery, RedeliverWebhook,
        TestWebhook, WebhookDelivery,
    },
};
use serde_json::json;

/// The delivery with its payload.
fn with(payload: String, state: &State) -> WebhookDelivery {
    WebhookDelivery { payload: Some(payload), ..state.delivery.clone() }
}

async fn deliver(cx: &Call, new: New) -> Result<WebhookDelivery, Fault> {
    let id: DeliveryId = cx.world.ports.random.id(cx.now);
    let payload = new.payload.clone();
    let show = move |state: &State| Ok(with(payload.clone(), state));
    cx.to::<Deliveries>(id).create(new, show).await
}

/// Refuses another delivery of an organization with the most that have not ended.
fn check_room(world: &World, organization: OrganizationId) -> Result<(), Fault> {
    match is_room(&world.store, organization)? {
        true => Ok(()),
        false => Err(Fault::NotNow(format!(
            "{MOST_WAITING} deliveries of this organization have not ended; repeat it when there are fewer"
        ))),
    }
}

impl Serves<TestWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: TestWebhook) -> Result<WebhookDelivery, Fault> {
        let (_, webhook) = cx.ancestry.webhook()?;
        check_room(&self.world, webhook.organization_id)?;
        let event = EventType::WebhookTest;
        let data = json!({
            event.noun(): view(p.webhook_id, webhook), "organizationId": webhook.organization_id,
        });
        let new = New {
            organization_id: webhook.organization_id,
            webhook_id: p.webhook_id,
            message_id: self.world.ports.random.id(cx.now),
            event,
            payload: outbox::payload(event, cx.now, &data),
            redelivery_of: None,
        };
        deliver(cx, new).await
    }
}

impl Serves<GetWebhookDeliveries> for Platform {
    async fn serve(
        &self,
        _: &Call,
        p: GetWebhookDeliveries,
    ) -> Result<Page<WebhookDelivery>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        let of = (p.webhook_id, p.state);
        pagination::children::<Deliveries, _>(store, of, list, false, |_, seen| {
            Ok(Some(seen.state.delivery.clone()))
        })
    }
}

impl Serves<GetWebhookDelivery> for Platform {
    async fn serve(&self, cx: &Call, _: GetWebhookDelivery) -> Result<WebhookDelivery, Fault> {
        let state = &cx.ancestry.delivery()?.1.state;
        Ok(with(state.payload(&self.world.store)?, state))
    }
}

impl Serves<RedeliverWebhook> for Platform {
    async fn serve(&self, cx: &Call, p: RedeliverWebhook) -> Result<WebhookDelivery, Fault> {
        let (_, seen) = cx.ancestry.delivery()?;
        if seen.delivery.state == DeliveryState::Pending {
            return Err(Fault::NotNow(
                "this delivery is pending; it can be repeated when it has ended".into(),
            ));
        }
        let is_test = seen.delivery.event == EventType::WebhookTest;
        let webhook = cx.ancestry.webhook()?.1;
        if !webhook.enabled && !is_test {
            return Err(Fault::NotNow(
                "the webhook is disabled; enable it with svc_updateWebhook first".into(),
            ));
        }
        check_room(&self.world, webhook.organization_id)?;
        let new = New {
            organization_id: webhook.organization_id,
            webhook_id: seen.delivery.webhook_id,
            message_id: seen.delivery.message_id,
            event: seen.delivery.event,
            payload: seen.payload(&self.world.store)?,
            redelivery_of: Some(p.delivery_id),
        };
        deliver(cx, new).await
    }
}
