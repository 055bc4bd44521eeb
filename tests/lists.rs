//! Lists over many records: one page reads a bounded number of them.

use crate::support::service::Service;
use actors::{
    kinds::{
        delivery::builds::{BuildPlace, Builds, State},
        events::deliveries::{Deliveries, State as Delivery},
    },
    ports::random::Random,
    runtime::resource::Kept,
};
use contract::{
    AppId, Timestamp, WebhookId,
    apps::Platform,
    artifacts::ProvenancePath,
    builds::{Build, BuildState},
    webhooks::{DeliveryState, EventType, WebhookDelivery},
};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Change;

/// Records of each kind. A page reads at most 1,000.
const MANY: usize = 10_000;

#[test]
fn one_page_of_a_long_list_reads_a_bounded_number_of_records() {
    let mut service = Service::start();
    service.leaves_work("records that no owner wrote");
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let organization = service.call(Some(&ada), "listOrganizations", json!({})).ok();
    let hook =
        json!({"organizationId": organization["items"][0]["id"], "url": "https://example.com/"});
    let hook = service.call(Some(&ada), "svc_createWebhook", hook).ok()["webhook"]["id"].clone();
    service.stop();
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    fill(&service, id(&app).parse().unwrap(), id(&hook).parse().unwrap());
    service.check();
    service.boot();

    // Each page without an item stands for the records that it read.
    let mut params = json!({"appId": app, "platform": "ios"});
    let mut pages = 0;
    loop {
        let page = service.call(Some(&ada), "svc_getBuilds", params.clone()).ok();
        assert_eq!(page["items"], json!([]));
        pages += 1;
        if page["nextCursor"].is_null() {
            break;
        }
        params["cursor"] = page["nextCursor"].clone();
    }
    assert!(pages >= MANY / 1000, "{pages} pages read {MANY} records");

    // A list of one state reads those in the state only, so one page finds the oldest of all.
    let failed = json!({"webhookId": hook, "state": "failed"});
    let page = service.call(Some(&ada), "svc_getWebhookDeliveries", failed).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(page["nextCursor"], Value::Null);
    let all = json!({"webhookId": hook, "limit": 200});
    let page = service.call(Some(&ada), "svc_getWebhookDeliveries", all).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 200);

    // Whoever deletes an app is told all that goes with it, however much that is.
    let deleted = service.call(Some(&ada), "deleteApp", json!({"appId": app})).ok();
    assert_eq!(deleted["deleted"]["builds"], MANY);
}

/// Writes builds of one app for Android, and deliveries of one webhook, of which the oldest failed.
fn fill(service: &Service, app: AppId, hook: WebhookId) {
    let store = service.open_store();
    let random = Random::default();
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let begun = Timestamp::from_millis(i64::try_from(begun).unwrap());
    let system = actix_rt::System::new();
    for batch in 0..MANY / 500 {
        let mut change = Change::new();
        for n in batch * 500..(batch + 1) * 500 {
            let now = begun + Duration::from_millis(n as u64);
            let (profile, path) = ("production".parse().unwrap(), ProvenancePath::CliTrigger);
            let build = Build::queued(random.id(now), app, Platform::Android, profile, path, now);
            let state = State {
                build: Build { state: BuildState::Cancelled, finished_at: Some(now), ..build },
                organization: None,
                limit_seconds: 60,
                place: BuildPlace::Runner,
                plan: None,
                planned_at: None,
                queued_until: now,
                lease: None,
                run: None,
                removing_log: true,
                log_removed: true,
                log_bytes: 0,
                removing: false,
            };
            change = change.create::<Builds>(&state.build.id.clone(), Kept::at_rest(state));
            let state = if n == 0 { DeliveryState::Failed } else { DeliveryState::Succeeded };
            let delivery = WebhookDelivery {
                id: random.id(now),
                webhook_id: hook,
                message_id: random.id(now),
                event: EventType::WebhookTest,
                state,
                attempts: Vec::new(),
                next_attempt_at: None,
                error: None,
                redelivery_of: None,
                payload: None,
                created_at: now,
                finished_at: Some(now),
            };
            let (id, payload) = (delivery.id, Some(String::new()));
            let state = Delivery { delivery, organization_id: None, payload, early: 0 };
            change = change.create::<Deliveries>(&id, Kept::at_rest(state));
        }
        system.block_on(store.commit(change)).unwrap();
    }
    store.close();
}
