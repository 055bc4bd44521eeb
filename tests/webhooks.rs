//! Webhooks: the receiver is a program in Node, and verifies with the library of Standard Webhooks.

use crate::support::{
    requires,
    service::{Person, Service, eventually},
    webhooks::Receiver,
};
use serde_json::{Value, json};

struct World {
    receiver: Receiver,
    service: Service,
    ada: Person,
    organization: Value,
    app: Value,
}

impl World {
    /// `None` where a program that the test needs is missing.
    fn new(test: &str) -> Option<World> {
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

    fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    /// Makes a webhook at a path of the receiver, which knows its secret by the name of the path.
    fn webhook(&self, path: &str) -> Value {
        let url = self.receiver.url(path);
        let params = json!({"organizationId": self.organization, "url": url});
        let made = self.call("svc_createWebhook", params);
        self.receiver.verify_with(&json!({path: made["secret"]}));
        made["webhook"]["id"].clone()
    }

    /// Uploads an artifact with its own version of the fixture.
    fn upload(&self) -> Value {
        self.service.upload(&self.ada, &self.app, "sample.apk", "1.4.2")["id"].clone()
    }

    fn deliveries(&self, webhook: &Value) -> Vec<Value> {
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
