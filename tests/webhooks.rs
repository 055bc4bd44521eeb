//! Webhooks: the receiver is a program in Node, and verifies with the library of Standard Webhooks.

use crate::support::{
    load::together,
    requires,
    service::{Person, Service, eventually, holds},
    webhooks::Receiver,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashSet},
    net::TcpListener,
};

pub struct World {
    // Ends first, while what it talks to is there.
    pub service: Service,
    pub receiver: Receiver,
    pub ada: Person,
    pub organization: Value,
    pub app: Value,
}

impl World {
    /// `None` where a program that the test needs is missing.
    pub fn new(test: &str) -> Option<World> {
        if !requires::node_packages(test, "webhooks") {
            return None;
        }
        let receiver = Receiver::start();
        let service = Service::start_with(&[("SVC_WEBHOOK_PRIVATE_HOSTS", &receiver.host)]);
        let ada = service.register("ada");
        let organization = service.call(Some(&ada), "createOrganization", json!({"name": "Acme"}));
        let organization = organization.ok()["id"].clone();
        let (_, app) = service.project_with_app(&ada, Some(&organization));
        Some(World { receiver, service, ada, organization, app })
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    /// Makes a webhook at a path of the receiver, which knows its secret by the name of the path.
    pub fn webhook(&self, path: &str) -> Value {
        let url = self.receiver.url(path);
        let params = json!({"organizationId": self.organization, "url": url});
        let made = self.call("svc_createWebhook", params);
        self.receiver.verify_with(&json!({path: made["secret"]}));
        made["webhook"]["id"].clone()
    }

    pub fn project(&self) -> Value {
        self.call("getApp", json!({"appId": self.app}))["projectId"].clone()
    }

    /// Uploads an artifact and has it verified.
    pub fn upload(&self) -> Value {
        self.service.upload(&self.ada, &self.app, "sample.apk", "1.4.2")["id"].clone()
    }

    /// Publishes a release of an uploaded file.
    pub fn release_of(&self, file: &str, version: &str) -> Value {
        let artifact = self.service.upload(&self.ada, &self.app, file, version)["id"].clone();
        let params = json!({"appId": self.app, "artifactIds": [artifact], "version": version,
            "channel": "production"});
        let release = self.call("svc_createRelease", params)["id"].clone();
        self.call("svc_publishRelease", json!({"releaseId": release, "targets": ["ota"]}));
        release
    }

    pub fn deliveries(&self, webhook: &Value) -> Vec<Value> {
        let params = json!({"webhookId": webhook, "limit": 200});
        let page = self.call("svc_getWebhookDeliveries", params);
        page["items"].as_array().unwrap().clone()
    }
}

#[test]
fn a_receiver_gets_signed_events() {
    let Some(world) = World::new("a_receiver_gets_signed_events") else { return };
    let webhook = world.webhook("/all");
    let artifact = world.upload();

    let received = world.receiver.wait_for("/all", 1);
    let request = &received[0];
    assert_eq!(request.verified_by, ["/all"], "{request:?}");
    assert_eq!(request.event["type"], "artifact.verified");
    let data = &request.event["data"];
    assert_eq!(data["artifact"]["id"], artifact);
    assert_eq!(data["artifact"], world.call("svc_getArtifact", json!({"artifactId": artifact})));
    assert_eq!((&data["appId"], &data["organizationId"]), (&world.app, &world.organization));
    assert_eq!(request.headers["content-type"], "application/json");

    eventually("the delivery succeeds", || world.deliveries(&webhook)[0]["state"] == "succeeded");
    let delivery = &world.deliveries(&webhook)[0];
    assert_eq!(delivery["messageId"], request.id.as_str());
    assert_eq!(
        (&delivery["payload"], &delivery["attempts"][0]["status"]),
        (&Value::Null, &json!(204))
    );
    let delivery = world.call("svc_getWebhookDelivery", json!({"deliveryId": delivery["id"]}));
    assert_eq!(delivery["payload"], request.body.as_str());
}

#[test]
fn a_rotated_secret_verifies_beside_the_new_one() {
    let Some(world) = World::new("a_rotated_secret_verifies_beside_the_new_one") else { return };
    let url = world.receiver.url("/hooks");
    let params = json!({"organizationId": world.organization, "url": url});
    let made = world.call("svc_createWebhook", params);
    let webhook = json!({"webhookId": made["webhook"]["id"]});
    let rotated = world.call("svc_rotateWebhookSecret", webhook.clone());
    assert_ne!(made["secret"], rotated["secret"]);
    assert!(rotated["webhook"]["previousSecretUntil"].is_string());
    let first = made["secret"].clone();
    world.receiver.verify_with(&json!({"first": first, "second": rotated["secret"]}));
    world.call("svc_testWebhook", webhook.clone());
    assert_eq!(world.receiver.wait_for("/hooks", 1)[0].verified_by, ["first", "second"]);

    // The secret before the previous one signs no more.
    let third = world.call("svc_rotateWebhookSecret", webhook.clone())["secret"].clone();
    let secrets = json!({"first": first, "second": rotated["secret"], "third": third});
    world.receiver.verify_with(&secrets);
    world.call("svc_testWebhook", webhook.clone());
    assert_eq!(world.receiver.wait_for("/hooks", 2)[1].verified_by, ["second", "third"]);

    // Nobody reads a secret again, not even from the files of the service.
    let read = world.call("svc_getWebhook", webhook);
    assert!(read["secret"].is_null());
    for secret in secrets.as_object().unwrap().values() {
        assert!(!holds(&world.service.data(), secret.as_str().unwrap().as_bytes()));
    }
}

#[test]
fn an_event_can_be_delivered_again() {
    let Some(world) = World::new("an_event_can_be_delivered_again") else { return };
    world.receiver.answers("/hooks", json!([{}, {"hang": true}]));
    let webhook = world.webhook("/hooks");
    world.upload();
    eventually("the delivery succeeds", || {
        world.deliveries(&webhook).first().is_some_and(|d| d["state"] == "succeeded")
    });
    let delivery = world.deliveries(&webhook)[0].clone();
    let redeliver = |delivery: &Value| {
        let params = json!({"deliveryId": delivery["id"]});
        world.service.call(Some(&world.ada), "svc_redeliverWebhook", params)
    };
    let again = redeliver(&delivery).ok();
    assert_eq!((&again["redeliveryOf"], &again["state"]), (&delivery["id"], &json!("pending")));
    assert_eq!(redeliver(&again).refusal(), (409, 119), "it has not ended");
    let requests = world.receiver.wait_for("/hooks", 2);
    assert_eq!((&requests[0].id, &requests[0].body), (&requests[1].id, &requests[1].body));

    // Sixteen at once: each is a delivery of its own, of the same message.
    let all = together(16, |_| redeliver(&delivery).ok()["id"].as_str().unwrap().to_owned());
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 16);
    let requests = world.receiver.wait_for("/hooks", 18);
    assert!(requests.iter().all(|request| request.id == requests[0].id));

    // To nobody, when the webhook is disabled.
    let disable = json!({"webhookId": webhook, "enabled": false});
    assert_eq!(world.call("svc_updateWebhook", disable)["enabled"], false);
    assert_eq!(redeliver(&delivery).refusal(), (409, 119));
}

#[test]
fn no_request_goes_into_the_internal_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = Service::start();
    let ada = service.register("ada");
    let organization = service.call(Some(&ada), "createOrganization", json!({"name": "Acme"}));
    let organization = organization.ok()["id"].clone();
    let create = |url: &str| {
        let params = json!({"organizationId": organization, "url": url});
        service.call(Some(&ada), "svc_createWebhook", params)
    };
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "http://hooks.example.com/".to_owned(),
    ] {
        assert_eq!(create(&url).refusal(), (400, 142), "{url}");
    }
    // A name that resolves to an internal address.
    let webhook = create(&format!("https://localhost:{port}/")).ok()["webhook"]["id"].clone();
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let test = call("svc_testWebhook", json!({"webhookId": webhook})).ok();
    let read = || call("svc_getWebhookDelivery", json!({"deliveryId": test["id"]})).ok();
    eventually("the test fails", || read()["state"] == "failed");
    let error = read()["attempts"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("SVC_WEBHOOK_PRIVATE_HOSTS") && !error.contains("127.0.0.1"), "{error}");
    let update = json!({"webhookId": webhook, "url": "https://10.0.0.1/"});
    assert_eq!(call("svc_updateWebhook", update).refusal(), (400, 142));
    assert!(listener.accept().is_err(), "a connection came");
}

#[test]
fn a_webhook_gets_the_events_that_it_wants() {
    let Some(world) = World::new("a_webhook_gets_the_events_that_it_wants") else { return };
    world.webhook("/all");
    let params = json!({
        "organizationId": world.organization, "url": world.receiver.url("/some"),
        "events": ["release.published", "build.cancelled", "release.published"],
    });
    let some = world.call("svc_createWebhook", params)["webhook"].clone();
    assert_eq!(some["events"], json!(["release.published", "build.cancelled"]));
    let unknown = json!({"webhookId": some["id"], "events": ["release.burnt"]});
    let refused = world.service.call(Some(&world.ada), "svc_updateWebhook", unknown);
    assert_eq!(refused.refusal(), (400, 142));

    let (first, second) =
        (world.release_of("sample.apk", "1.4.2"), world.release_of("sample-1.5.0.apk", "1.5.0"));
    world.call("svc_rollbackRelease", json!({"releaseId": second}));
    let repository = json!({"appId": world.app, "url": "https://127.0.0.1:1/team/app.git"});
    world.call("svc_connectRepository", repository);
    let build = json!({"appId": world.app, "platform": "android"});
    let build = world.call("svc_triggerBuild", build)["id"].clone();
    world.service.call(Some(&world.ada), "svc_cancelBuild", json!({"buildId": build}));
    let wrong = world.service.send(&world.ada, &world.app, "sample.apk", Some("1.4.2"));
    let sha256 = json!({"sha256": "0".repeat(64)});
    world.service.post(Some(&world.ada), &format!("{wrong}/finalize"), &sha256);

    let told = |path: &str| {
        let events = world.receiver.received(path).into_iter().map(|request| request.event);
        let told = events.map(|event| {
            let kind = event["type"].as_str().unwrap().to_owned();
            let noun = kind.split('.').next().unwrap().to_owned();
            let id = event["data"][noun.as_str()]["id"].as_str().unwrap().to_owned();
            (kind, id)
        });
        told.collect::<BTreeSet<_>>()
    };
    let is = |kind: &str, id: &Value| (kind.to_owned(), id.as_str().unwrap().to_owned());
    let of_build = |told: &BTreeSet<(String, String)>| {
        told.iter().any(|(kind, id)| kind.starts_with("build.") && *id == build)
    };
    let expected = [
        is("release.published", &first),
        is("release.published", &second),
        is("release.superseded", &first),
        is("release.rolledBack", &second),
        is("artifact.rejected", &json!(wrong)),
    ];
    eventually("all events come", || {
        let told = told("/all");
        expected.iter().all(|event| told.contains(event)) && of_build(&told)
    });
    let some = told("/some");
    let wanted = ["release.published", "build.cancelled"];
    assert!(some.iter().all(|(kind, _)| wanted.contains(&kind.as_str())), "{some:?}");
    assert!(some.contains(&expected[0]) && some.contains(&expected[1]), "{some:?}");
}

#[test]
fn sixteen_callers_at_once_make_sixteen_events() {
    let Some(world) = World::new("sixteen_callers_at_once_make_sixteen_events") else { return };
    let made = together(16, |n| {
        let url = world.receiver.url(&format!("/{n}"));
        let params = json!({"organizationId": world.organization, "url": url});
        world.service.call(Some(&world.ada), "svc_createWebhook", params).ok()["webhook"]["id"]
            .clone()
    });
    let (_, project) = (world.upload(), world.project());
    let apps = together(16, |_| {
        let params = json!({"projectId": project, "name": "Shop"});
        let app = world.call("createApp", params)["id"].clone();
        world.service.upload(&world.ada, &app, "sample.apk", "1.4.2")["id"].clone()
    });
    let expected: BTreeSet<_> = apps.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    for n in 0..made.len() {
        let requests = world.receiver.wait_for(&format!("/{n}"), 17);
        let ids: HashSet<_> = requests.iter().map(|request| &request.id).collect();
        assert_eq!((requests.len(), ids.len()), (17, 17), "each event once");
        let artifacts = requests.iter().map(|request| &request.event["data"]["artifact"]["id"]);
        let artifacts: BTreeSet<_> = artifacts.map(|id| id.as_str().unwrap().to_owned()).collect();
        assert!(artifacts.is_superset(&expected));
    }
}

#[test]
fn the_command_line_manages_webhooks() {
    let Some(world) = World::new("the_command_line_manages_webhooks") else { return };
    let login = ["login", "--email", "ada@example.com", "--password-stdin", "--application-id"];
    let login = [&login[..], &[&world.service.application_id]].concat();
    let url = [("SVC_API_URL", world.service.url.as_str())];
    assert!(world.service.cli_with(&login, &url, "correct horse\n").status.success());
    let run = |args: &[&str]| {
        let output = world.service.cli(&[&["webhook"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let organization = world.organization.as_str().unwrap();
    let address = world.receiver.url("/cli");
    let made = world.service.cli_json(
        &[
            "webhook",
            "create",
            &address,
            "--organization",
            organization,
            "--event",
            "build.failed,build.succeeded",
        ],
        &[],
    );
    let id = made["webhook"]["id"].as_str().unwrap();
    world.receiver.verify_with(&json!({"cli": made["secret"]}));

    let (code, out, err) = run(&["test", id]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("succeeded") && out.contains("204 after"), "{out}");
    assert_eq!(world.receiver.received("/cli")[0].verified_by, ["cli"]);
    world.receiver.always("/cli", json!({"status": 500}));
    let (code, _, err) = run(&["test", id]);
    assert!(code == Some(1) && err.contains("the status 500"), "{err}");
    world.receiver.always("/cli", json!({}));

    let (_, out, _) = run(&["list", "--organization", organization]);
    assert!(out.contains(id) && out.contains("build.failed,build.succeeded"), "{out}");
    let (_, out, _) = run(&["update", id, "--all-events", "--description", "ours", "--disable"]);
    assert!(out.contains("disabled") && out.contains("ours"), "{out}");
    let (_, out, _) = run(&["show", id]);
    assert!(out.lines().any(|line| line.starts_with("events") && line.ends_with("all")), "{out}");
    let (_, out, err) = run(&["rotate", id]);
    assert!(out.contains("whsec_") && err.contains("not shown again"), "{out}{err}");
    let (_, out, _) = run(&["deliveries", id, "--state", "failed", "--output", "id"]);
    let failed = out.trim();
    let (_, out, _) = run(&["deliveries", "--delivery", failed]);
    assert!(out.contains("500 after"), "{out}");
    let (code, out, err) = run(&["redeliver", failed]);
    assert_eq!((code, out.contains(failed)), (Some(0), true), "{out}{err}");
    assert!(run(&["delete", id]).1.contains("is deleted"));
    assert_eq!(run(&["show", id]).0, Some(1));
    assert_eq!(run(&["create", &address]).0, Some(2), "an organization is needed");
}
