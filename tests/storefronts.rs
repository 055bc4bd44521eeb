//! Two stores of one shop, from nothing to money: the service deploys the shop and a storefront, buyers
//! go through the pages in a real browser, and the orders are paid and settled.

use crate::{
    commerce::as_master,
    instances::{made, until},
    support::{
        browser::Browser,
        engine::{Installed, docker, engine},
        payments::{PaymentProvider, SECRET_KEY, has_paystack},
        ports::free_port,
        service::{Person, eventually},
        vendure::Vendure,
    },
};
use data_encoding::BASE64;
use fantoccini::key::Key;
use serde_json::{Value, json};
use std::{collections::HashMap, process::Command};

/// The shop and who sells there.
struct Market {
    service: Installed,
    provider: PaymentProvider,
    shop: Vendure,
    ada: Person,
    /// The market server, when it came up.
    instance: Value,
}

impl Market {
    fn call(&self, function: &str, mut params: Value) -> Value {
        params["appId"] = self.instance["appId"].clone();
        self.service.call(Some(&self.ada), function, params).ok()
    }

    fn checkout(&self, reference: &str) -> Value {
        let params = json!({"reference": reference});
        self.service.call(Some(&self.ada), "svc_getCheckout", params).ok()
    }

    /// The order of a checkout, as the shop has it.
    fn order(&self, channel: &str, reference: &str) -> Value {
        self.shop.order_with_code(channel, &self.checkout(reference)["orderCode"])
    }

    /// Waits until the order is settled, and asserts that it has this payment and no other.
    fn settles(&self, channel: &str, reference: &str) {
        eventually("it is settled", || self.checkout(reference)["state"] == "settled");
        let order = self.order(channel, reference);
        assert_eq!(order["state"], "PaymentSettled", "{order}");
        let [payment] = &order["payments"].as_array().unwrap()[..] else { panic!("{order}") };
        assert_eq!(
            (&payment["transactionId"], &payment["amount"]),
            (&json!(reference), &order["totalWithTax"])
        );
        assert_eq!(
            self.checkout(reference)["paid"]["amount"],
            order["totalWithTax"],
            "the shop's total"
        );
        assert_eq!(self.provider.charges(reference), 1);
    }
}

/// A container with a storefront, beside those that the service runs.
struct Elsewhere(String);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", &self.0]).output();
    }
}

/// The reference in the address of a page to which a payment led back.
fn reference(browser: &Browser) -> String {
    let url: url::Url = browser.url().parse().unwrap();
    url.query_pairs().collect::<HashMap<_, _>>()["reference"].to_string()
}

#[test]
fn buyers_pay_in_a_browser_for_orders_of_two_channels() {
    let test = "buyers_pay_in_a_browser_for_orders_of_two_channels";
    let Some(engine) = engine(test) else { return };
    if !has_paystack(test) {
        return;
    }
    let Some(browser) = Browser::start(test) else { return };
    let provider = PaymentProvider::paystack();
    let service = engine.service_for_containers(&[("SVC_PAYSTACK_URL", &provider.address)]);
    let (ada, project, made) = made(&service, "svc_deployMarketServer", json!({}));
    let instance = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(instance["state"], "running", "{instance}");
    let app = instance["appId"].clone();
    let secrets = json!({"appId": app, "kind": "market"});
    let secrets = service.call(Some(&ada), "svc_getInstanceSecrets", secrets).ok();
    let password = secrets["secrets"]["superadmin_password"].as_str().unwrap();
    let shop = Vendure::deployed(instance["url"].as_str().unwrap(), "superadmin", password);
    shop.product("ng", "tea", 100_000, Some(10));
    shop.product("gh", "cup", 2_500, Some(10));
    let market = Market { service, provider, shop, ada, instance };
    let Market { service, provider, shop, ada, instance } = &market;
    let key = BASE64.encode(SECRET_KEY.as_bytes());
    market.call("svc_setCredential", json!({"kind": "paystack", "name": "main", "data": key}));
    let webhook = format!("{}/api/v1/payments/{}/paystack", service.url, app.as_str().unwrap());
    provider.notify(&webhook);

    // The address of the shop is on this machine, and needs no setting for the app that has the shop.
    let register = |channel: &str, store: &str, token: &str, app: &Value| {
        let admin_api_url = format!("{}/admin-api", instance["url"].as_str().unwrap());
        let params = json!({
            "channelToken": shop.channel(channel), "appId": app, "storeId": store,
            "adminApiUrl": admin_api_url, "adminToken": token, "label": store,
        });
        as_master(service, "svc_admin_registerCommerceChannel", &params)
    };
    let [of_ng, of_gh] = ["ng", "gh"].map(|channel| shop.api_key(channel));
    let other = json!({"projectId": project["id"], "name": "Another"});
    let other = service.call(Some(ada), "createApp", other).ok();
    for (token, app, why) in [
        ("wrong", &app, "token"),
        (of_gh.as_str(), &app, "token"),
        (of_ng.as_str(), &other["id"], "https://"),
    ] {
        let refused = register("ng", "lagos", token, app);
        assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
        assert!(refused.body.to_string().contains(why), "{}", refused.body);
    }
    register("ng", "lagos", &of_ng, &app).ok();
    register("gh", "accra", &of_gh, &app).ok();

    // A buyer of the first store.
    let env = json!({
        "SHOP_NAME": "Lagos Tea", "STORE_ID": "lagos", "CHANNEL_TOKEN": shop.channel("ng"),
    });
    market.call("svc_deployMarketStorefront", json!({"env": env}));
    let running = until(service, ada, &instance["id"], &["running", "failed"]);
    let lagos = running["services"][2]["url"].as_str().unwrap();
    browser.open(&format!("{lagos}/"));
    browser.check_layout("products");
    browser.click("link", "The tea");
    for (field, text) in [
        ("E-mail", "ada@example.com"),
        ("Name", "Ada Lovelace"),
        ("Street and number", "1 Long Street"),
        ("City", "Lagos"),
    ] {
        browser.fill("textbox", field, text);
    }
    browser.choose("Country", "Nigeria");
    browser.check_layout("product");

    // Not so many are there. What was entered stays.
    browser.fill("spinbutton", "Quantity", "50");
    browser.click("button", "Continue to payment");
    browser.says("(SKU tea): 50 were asked for, and 10 can be had.\n");
    browser.check_layout("refused");
    browser.fill("spinbutton", "Quantity", "2");
    browser.click("button", "Continue to payment");
    browser.click("button", "Pay NGN 3150.00");
    browser.says("Your payment has arrived.");
    let paid = reference(&browser);
    market.settles("ng", &paid);
    let code = market.checkout(&paid)["orderCode"].clone();
    browser.says(code.as_str().unwrap());
    browser.says("NGN 3,150.00");
    browser.check_layout("paid");
    for _ in 0..2 {
        let verified = service.call(None, "svc_checkout_verify", json!({"reference": paid})).ok();
        assert_eq!(verified["status"], "paid");
        let again = service.call(Some(ada), "svc_settleCheckout", json!({"reference": paid}));
        assert_eq!(again.refusal(), (409, 119), "it is settled already");
    }
    market.settles("ng", &paid);

    // The second store has a storefront of the same image elsewhere. Its buyer has only a keyboard.
    let image = docker(&[
        "images",
        "--format",
        "{{.Repository}}:{{.Tag}}",
        "svc/recipes/vendure-storefront",
    ]);
    let port = free_port();
    let url = instance["url"].as_str().unwrap();
    let shop_api = format!("SHOP_API_URL={url}/shop-api");
    let platform = format!("SVC_URL={}/backend", url.split_once("/instances/").unwrap().0);
    let application = format!("SVC_APPLICATION_ID={}", service.application_id);
    let app = format!("SVC_APP_ID={}", app.as_str().unwrap());
    let channel = format!("CHANNEL_TOKEN={}", shop.channel("gh"));
    let publish = format!("127.0.0.1:{port}:8080");
    let mut run = vec!["run", "--detach", "--publish", &publish];
    for setting in [&shop_api, &platform, &application, &app, &channel, "STORE_ID=accra"] {
        run.extend(["--env", setting]);
    }
    run.push(image.lines().next().unwrap());
    let _accra = Elsewhere(docker(&run));
    let accra = format!("http://127.0.0.1:{port}");
    let health = format!("{accra}/health");
    eventually("it serves", || service.http.get(&health).send().is_ok());
    browser.open(&format!("{accra}/"));
    browser.tab_to("link", "The cup");
    browser.keys(&Key::Enter.to_string());
    browser.find("spinbutton", "Quantity");
    for (field, text) in [
        ("E-mail", "bob@example.com"),
        ("Name", "Bob"),
        ("Street and number", "2 Short Street"),
        ("City", "Accra"),
    ] {
        browser.tab_to("textbox", field);
        browser.keys(text);
    }
    browser.tab_to("combobox", "Country");
    browser.keys("Gh");
    browser.tab_to("button", "Continue to payment");
    browser.keys(&Key::Enter.to_string());

    // The whole shop is down between the payment and the settlement.
    browser.find("button", "Pay GHS 1028.75");
    market.call("svc_stopMarketServer", json!({"wait": true}));
    browser.click("button", "Pay GHS 1028.75");
    browser.says("Your payment has arrived.");
    let paid = reference(&browser);
    eventually("it is tried", || !market.checkout(&paid)["problem"].is_null());
    let administrator = service.administrator();
    let unsettled =
        service.call(Some(&administrator), "svc_admin_getUnsettledCheckouts", json!({}));
    assert_eq!(unsettled.ok()["items"][0]["reference"], paid.as_str());
    browser.open(&format!("{accra}/"));
    browser.says("The shop is closed for a moment.");
    market.call("svc_startMarketServer", json!({}));
    until(service, ada, &instance["id"], &["running"]);
    market.settles("gh", &paid);
    provider.check();
}
