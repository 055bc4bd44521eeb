//! Lists of very many records.

use super::{Tenants, app_of, organization_of, start};
use crate::{
    Pace, builds, machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::{
        delivery::builds::{Builds, State as Build},
        events::deliveries::{Deliveries, State as Delivery},
    },
    ports::random::Random,
    runtime::resource::Kept,
};
use contract::{
    AppId, OrganizationId, WebhookId,
    builds::BuildState,
    webhooks::{DeliveryState, EventType, WebhookDelivery},
};
use serde_json::{Value, json};

/// Lists at a time.
const LISTS: usize = 4;

pub fn measure(pace: Pace, records: usize) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server = start(home.path(), pace, &[])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let app = app_of(&server, &attacker)?;
    let organization = organization_of(&server, &attacker)?;
    let hook = webhook(&server, &attacker, organization, "https://hooks.example.com/")?;
    server.stop()?;
    let random = Random::default();
    seed::fill(home.path(), records, |change, number| {
        if number % 2 == 0 {
            let build = ended(app, organization)?;
            return Ok(change.create::<Builds>(&build.build.id.clone(), Kept::at_rest(build)));
        }
        let delivery = delivery(&random, hook, organization, DeliveryState::Succeeded);
        Ok(change.create::<Deliveries>(&delivery.delivery.id.clone(), Kept::at_rest(delivery)))
    })?;
    let server = start(home.path(), pace, &[])?;
    let lists: [(&str, Value); LISTS] = [
        ("svc_getWebhookDeliveries", json!({"webhookId": hook, "state": "failed"})),
        ("svc_getWebhookDeliveries", json!({"webhookId": hook, "limit": 200})),
        // No build of the app is for iOS.
        ("svc_getBuilds", json!({"appId": app, "platform": "ios"})),
        ("svc_getBuilds", json!({"appId": app, "platform": "ios", "state": "cancelled"})),
    ];
    let beside = visitor.beside(&server, pace, |signal| {
        signal.repeat(LISTS, |number, _| {
            let (list, params) = lists.get(number).or_say("a list")?;
            let mut params = params.clone();
            while !signal.is_over() {
                let page = server.client.call(Some(&attacker), list, &params)?;
                let Ok(next) = page.text("/result/nextCursor") else { break };
                let params = params.as_object_mut().or_say("the parameters")?;
                params.insert("cursor".into(), next.into());
            }
            Ok(())
        })
    })?;
    Ok(beside.rows(&format!("lists of {records} records")).into())
}

/// Makes a webhook.
pub fn webhook(
    server: &Server,
    session: &str,
    organization: OrganizationId,
    url: &str,
) -> Outcome<WebhookId> {
    let params = json!({"organizationId": organization, "url": url});
    let made = server.client.call(Some(session), "svc_createWebhook", &params)?;
    made.text("/result/webhook/id")?.parse().or_say("the webhook")
}

/// A build that was cancelled.
fn ended(app: AppId, organization: OrganizationId) -> Outcome<Build> {
    let now = builds::now();
    let mut state = builds::state(Random::default().id(now), app)?;
    state.organization = Some(organization);
    state.build.state = BuildState::Cancelled;
    state.build.finished_at = Some(now);
    state.log_removed = true;
    Ok(state)
}

/// A delivery in this state, with a payload of usual size.
pub fn delivery(
    random: &Random,
    webhook_id: WebhookId,
    organization: OrganizationId,
    state: DeliveryState,
) -> Delivery {
    let now = builds::now();
    let is_pending = state == DeliveryState::Pending;
    let delivery = WebhookDelivery {
        id: random.id(now),
        webhook_id,
        message_id: random.id(now),
        event: EventType::ArtifactVerified,
        state,
        attempts: Vec::new(),
        next_attempt_at: is_pending.then_some(now),
        error: None,
        redelivery_of: None,
        payload: None,
        created_at: now,
        finished_at: (!is_pending).then_some(now),
    };
    Delivery {
        delivery,
        organization_id: Some(organization),
        payload: Some(crate::webhooks::payload()),
        early: 0,
    }
}
