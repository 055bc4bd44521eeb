//! A Vendure for tests: one of its own, `tests/support/vendure/vendure.mjs`, or one that the service has
//! deployed, `tests/support/vendure/deployed.mjs`.

use super::{requires, rig::Rig};
use serde_json::{Value, json};

pub struct Vendure {
    rig: Rig,
    /// What is told at the start: `base`, `channels` by name (`ng`, `eu`, `jp`, `gh`, `kw`) with `id`,
    /// `code`, `token`, `currency` and `country`, and `tokens`: `session` and `apiKey` with the
    /// permissions that checkouts need, and `superadmin`. The API key opens the channel `ng` only.
    pub ready: Value,
}

impl Vendure {
    /// Takes some ten seconds.
    pub fn start() -> Vendure {
        let rig = Rig::start("vendure", "vendure.mjs", &[]);
        let ready = serde_json::from_str(&rig.line()).unwrap();
        Vendure { rig, ready }
    }

    /// The channels `ng` and `gh` in a Vendure that runs already, of whose superadmin these are name and
    /// password. In `ready` are `channels` and `tokens` only.
    pub fn deployed(address: &str, identifier: &str, password: &str) -> Vendure {
        let rig = Rig::start("vendure", "deployed.mjs", &[]);
        let config = json!({
            "address": address, "identifier": identifier, "password": password,
            "channels": ["ng", "gh"],
        });
        let ready: Value = serde_json::from_str(&rig.ask(&config)).unwrap();
        assert_eq!(ready["error"], Value::Null, "{ready}");
        Vendure { rig, ready }
    }

    /// A new API key for one channel of a deployed Vendure, with the permissions that checkouts need.
    pub fn api_key(&self, channel: &str) -> String {
        let made = self.tell(&json!({"do": "apiKey", "channel": channel}));
        made["apiKey"].as_str().unwrap().to_owned()
    }

    /// The address of the admin API at a place: requests are counted, and go wrong, by place.
    pub fn admin_api_url(&self, place: &str) -> String {
        format!("{}/{place}/admin-api", self.ready["base"].as_str().unwrap())
    }

    /// The token of a channel.
    pub fn channel(&self, name: &str) -> &str {
        self.ready["channels"][name]["token"].as_str().unwrap()
    }

    /// A token of an administrator: `session`, `apiKey` or `superadmin`.
    pub fn token(&self, name: &str) -> &str {
        self.ready["tokens"][name].as_str().unwrap()
    }

    /// Sends a command, and returns the answer.
    pub fn tell(&self, command: &Value) -> Value {
        self.rig.tell(command)
    }

    /// Asks the admin API as the superadmin. Returns `data`.
    pub fn admin(&self, channel: &str, query: &str, variables: &Value) -> Value {
        let command =
            json!({"do": "admin", "channel": channel, "query": query, "variables": variables});
        self.tell(&command)["data"].clone()
    }

    /// Adds a product with one variant to a channel. The price is without taxes, and has two
    /// decimals. Without stock, it is not counted. Returns the id of the variant.
    pub fn product(&self, channel: &str, sku: &str, price: u32, stock: Option<u32>) -> String {
        let mut product = json!({
            "do": "product", "channel": channel, "name": format!("The {sku}"), "sku": sku,
            "price": price,
        });
        if let Some(stock) = stock {
            product["stock"] = stock.into();
        }
        self.tell(&product)["variant"].as_str().unwrap().to_owned()
    }

    /// An order as the shop has it, or null.
    pub fn order(&self, channel: &str, id: &str) -> Value {
        let query = "query($id: ID!) { order(id: $id) {
            id code state totalWithTax currencyCode
            customer { emailAddress firstName lastName phoneNumber }
            shippingAddress { fullName streetLine1 city countryCode phoneNumber }
            billingAddress { fullName streetLine1 city countryCode phoneNumber }
            lines { id quantity productVariant { sku } }
            shippingLines { shippingMethod { code } }
            payments { method state amount transactionId metadata }
            history(options: {filter: {type: {eq: \"ORDER_NOTE\"}}}) { items { isPublic data } }
        } }";
        self.admin(channel, query, &json!({"id": id}))["order"].clone()
    }

    /// The order with this code, as the shop has it.
    pub fn order_with_code(&self, channel: &str, code: &Value) -> Value {
        let query = "query($code: String!) {
            orders(options: {filter: {code: {eq: $code}}}) { items { id } } }";
        let found = self.admin(channel, query, &json!({"code": code}));
        self.order(channel, found["orders"]["items"][0]["id"].as_str().unwrap())
    }

    /// What was asked at a place, in order: `operation`, and `how` it went wrong.
    pub fn asked(&self, place: &str) -> Vec<Value> {
        let answer = self.tell(&json!({"do": "requests", "place": place}));
        answer["requests"].as_array().unwrap().clone()
    }

    /// The names of the operations that were asked at a place, in order.
    pub fn requests(&self, place: &str) -> Vec<String> {
        let names = self.asked(place).into_iter();
        names.map(|it| it["operation"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Whether the tests with Vendure can run here. If not, prints which test is left out.
pub fn is_here(test: &str) -> bool {
    requires::node_packages(test, "vendure")
}
