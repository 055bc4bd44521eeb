//! Webhooks whose receiver fails or is gone, and a service that is killed: what is delivered again.

use crate::{support::service::eventually, webhooks::World};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[test]
fn a_failed_attempt_is_repeated_whatever_failed() {
    let Some(world) = World::new("a_failed_attempt_is_repeated_whatever_failed") else { return };
    let failures = [
        ("/error", json!({"status": 500, "body": "x".repeat(3000)}), "the status 500"),
        ("/redirect", json!({"status": 302, "headers": {"location": "/all"}}), "redirects"),
        ("/cut", json!({"cut": true}), "the connection broke"),
        ("/silent", json!({"hang": true}), "within 15 seconds"),
    ];
    let webhooks = failures.clone().map(|(path, failure, _)| {
        world.receiver.answers(path, json!([failure]));
        world.webhook(path)
    });
    world.upload();
    for ((path, _, why), webhook) in failures.iter().zip(&webhooks) {
        let requests = world.receiver.wait_for(path, 2);
        assert_eq!((&requests[0].id, &requests[0].body), (&requests[1].id, &requests[1].body));
        assert!(requests[1].at - requests[0].at >= 4500, "after a pause");
        let done = || world.deliveries(webhook)[0]["state"] == "succeeded";
        eventually(&format!("the delivery to {path} succeeds"), done);
        let attempts = &world.deliveries(webhook)[0]["attempts"];
        let error = attempts[0]["error"].as_str().unwrap();
        assert!(error.contains(why), "{path}: {error}");
        assert_eq!(attempts[1]["error"], Value::Null, "{path}");
    }
    let attempt = &world.deliveries(&webhooks[0])[0]["attempts"][0];
    assert_eq!((&attempt["status"], attempt["reply"].as_str().unwrap().len()), (&json!(500), 1024));
    assert!(world.receiver.received("/all").is_empty(), "no redirect is followed");
    // The webhooks work again.
    let failing = world.call("svc_getWebhook", json!({"webhookId": webhooks[0]}));
    assert_eq!(failing["failingSince"], Value::Null);
}

#[test]
fn a_receiver_that_is_gone_gets_nothing_more() {
    let Some(world) = World::new("a_receiver_that_is_gone_gets_nothing_more") else { return };
    world.receiver.always("/gone", json!({"status": 410}));
    let webhook = world.webhook("/gone");
    world.upload();
    let read = || world.call("svc_getWebhook", json!({"webhookId": webhook}));
    eventually("the webhook is disabled", || read()["enabled"] == false);
    assert!(read()["disabledReason"].as_str().unwrap().contains("410"));
    eventually("the delivery fails", || world.deliveries(&webhook)[0]["state"] == "failed");
    world.release_of("sample-1.5.0.apk", "1.5.0");
    // A test goes to a disabled webhook too, and changes nothing.
    let test = world.call("svc_testWebhook", json!({"webhookId": webhook}));
    let requests = world.receiver.wait_for("/gone", 2);
    assert_eq!(requests[1].event["type"], "webhook.test", "no event of the release");
    assert_eq!(requests[1].event["data"]["webhook"]["id"], webhook);
    assert_eq!(test["messageId"], requests[1].id.as_str());
    let enable = json!({"webhookId": webhook, "enabled": true});
    assert_eq!(world.call("svc_updateWebhook", enable)["disabledReason"], Value::Null);
}

#[test]
fn a_killed_service_loses_no_event_and_makes_none_twice() {
    let Some(mut world) = World::new("a_killed_service_loses_no_event_and_makes_none_twice") else {
        return;
    };
    let webhook = world.webhook("/hooks");
    // Killed while an attempt is under way: the receiver has the event, the service does not know.
    world.receiver.answers("/hooks", json!([{"hang": true}]));
    let mut artifacts = BTreeSet::from([world.upload().as_str().unwrap().to_owned()]);
    world.receiver.wait_for("/hooks", 1);
    world.service.kill();
    world.service.boot();
    let requests = world.receiver.wait_for("/hooks", 2);
    assert_eq!((&requests[0].id, &requests[0].body), (&requests[1].id, &requests[1].body));

    // Killed again and again at any moment after an event: before the fan-out, between it and the
    // delivery, and during the delivery.
    let mut random = fastrand::Rng::with_seed(0x5eed);
    for round in 0..12 {
        let params = json!({"projectId": world.project(), "name": format!("App {round}")});
        let app = world.call("createApp", params)["id"].clone();
        world.receiver.answers("/hooks", json!([{"delay": random.u64(..20)}]));
        let artifact = world.service.upload(&world.ada, &app, "sample.apk", "1.4.2");
        artifacts.insert(artifact["id"].as_str().unwrap().to_owned());
        std::thread::sleep(Duration::from_micros(random.u64(..12_000)));
        world.service.kill();
        world.service.boot();
    }
    let told = || {
        let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for request in world.receiver.received("/hooks") {
            assert_eq!(request.verified_by, ["/hooks"]);
            let artifact = request.event["data"]["artifact"]["id"].as_str().unwrap().to_owned();
            told.entry(artifact).or_default().insert(request.id);
        }
        told
    };
    eventually("every event arrives", || told().len() == artifacts.len());
    eventually("every delivery ends", || {
        let deliveries = world.deliveries(&webhook);
        deliveries.len() == artifacts.len()
            && deliveries.iter().all(|delivery| delivery["state"] == "succeeded")
    });
    let told = told();
    assert_eq!(told.keys().collect::<BTreeSet<_>>(), artifacts.iter().collect());
    assert!(told.values().all(|ids| ids.len() == 1), "one id for each event: {told:?}");
    world.service.stop();
    world.service.check();
}
