//! A service whose app takes payments through a provider of the tests.

use super::{
    payments::{PaymentProvider, SECRET_KEY, WEBHOOK_SECRET, has_paystack, has_stripe},
    service::{Answer, Person, Service, eventually, holds},
};
use data_encoding::BASE64;
use serde_json::{Value, json};

pub const BUYER: &str = "buyer@example.com";

pub struct World {
    // Ends first, while what it talks to is there.
    pub service: Service,
    /// `paystack` or `stripe`.
    name: &'static str,
    pub provider: PaymentProvider,
    pub ada: Person,
    pub app: Value,
}

impl World {
    /// With Paystack. `None` where a program that the test needs is missing.
    pub fn new(test: &str, settings: &[(&str, &str)]) -> Option<World> {
        let start =
            |common: &[(&str, &str)]| Some(Service::start_with(&[common, settings].concat()));
        has_paystack(test).then(|| World::with("paystack", PaymentProvider::paystack(), start))?
    }

    /// With Paystack, and a service of so many nodes.
    pub fn on_nodes(test: &str, count: usize) -> Option<World> {
        let start = |common: &[(&str, &str)]| Service::on_nodes_with(test, count, common);
        has_paystack(test).then(|| World::with("paystack", PaymentProvider::paystack(), start))?
    }

    /// With Stripe. `None` where a program that the test needs is missing.
    pub fn stripe(test: &str) -> Option<World> {
        let start = |common: &[(&str, &str)]| Some(Service::start_with(common));
        has_stripe(test).then(|| World::with("stripe", PaymentProvider::stripe(), start))?
    }

    fn with(
        name: &'static str,
        provider: PaymentProvider,
        start: impl FnOnce(&[(&str, &str)]) -> Option<Service>,
    ) -> Option<World> {
        let address = format!("SVC_{}_URL", name.to_uppercase());
        let common =
            [(address.as_str(), provider.address.as_str()), ("SVC_ANONYMOUS_TIER", "enterprise")];
        let service = start(&common)?;
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let world = World { name, provider, service, ada, app };
        let key = match name {
            "stripe" => {
                json!({"secretKey": SECRET_KEY, "webhookSecrets": [WEBHOOK_SECRET]}).to_string()
            }
            _ => SECRET_KEY.to_owned(),
        };
        world.store_key(&key);
        world.listen();
        Some(world)
    }

    pub fn store_key(&self, key: &str) -> Value {
        let data = BASE64.encode(key.as_bytes());
        let params = json!({"appId": self.app, "kind": self.name, "name": "main", "data": data});
        self.call("svc_setCredential", params)
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    /// The address to which the provider posts.
    pub fn webhook(&self) -> String {
        let (url, app) = (&self.service.url, self.app.as_str().unwrap());
        format!("{url}/api/v1/payments/{app}/{}", self.name)
    }

    /// Lets the provider post its notices to the service.
    pub fn listen(&self) {
        self.provider.notify(&self.webhook());
    }

    pub fn tell(&self, command: Value) -> Value {
        self.provider.tell(&command)
    }

    pub fn order(&self) -> Value {
        json!({
            "flow": "direct", "appId": self.app, "amount": 450_000, "currency": "NGN",
            "customer": {"email": BUYER}, "callbackUrl": "https://shop.example.com/thanks",
        })
    }

    /// Calls as a storefront does, with a request id.
    pub fn create(&self, order: &Value, once: &str) -> Answer {
        self.service.try_call(None, "svc_checkout_create", order.clone(), Some(once)).unwrap()
    }

    pub fn opened(&self, order: &Value, once: &str) -> Value {
        self.create(order, once).ok()["reference"].clone()
    }

    pub fn verify(&self, reference: &Value) -> Value {
        self.service.call(None, "svc_checkout_verify", json!({"reference": reference})).ok()
    }

    pub fn get(&self, reference: &Value) -> Value {
        self.call("svc_getCheckout", json!({"reference": reference}))
    }

    pub fn reaches(&self, reference: &Value, state: &str) -> Value {
        eventually(&format!("{reference} is {state}"), || self.get(reference)["state"] == state);
        self.get(reference)
    }

    /// Posts a notice with this signature.
    pub fn post(&self, body: &str, signature: &str) -> (u16, Value) {
        let request = self.service.http.post(self.webhook()).body(body.to_owned());
        let request = request.header("Content-Type", "application/json");
        let answer = request.header("X-Paystack-Signature", signature).send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// How often Paystack was asked about payments.
    pub fn looks(&self) -> usize {
        self.provider.requests("/transaction/verify/").len()
    }

    /// Fails if a request or an answer was not as the provider's description says, if a payment was
    /// charged twice, or if the store is not sound.
    pub fn check(mut self) {
        self.provider.check();
        let listed = json!({"appId": self.app, "limit": 200});
        let checkouts = self.call("svc_getCheckouts", listed)["items"].clone();
        for checkout in checkouts.as_array().unwrap() {
            let charges = self.provider.charges(checkout["reference"].as_str().unwrap());
            assert!(charges <= 1, "{charges} charges: {checkout}");
        }
        self.service.stop();
        self.service.check();
        assert!(!holds(&self.service.data(), SECRET_KEY.as_bytes()), "the key lies in the clear");
        assert!(!self.service.log().contains(SECRET_KEY), "the key is in the log");
    }
}
