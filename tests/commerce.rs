//! Orders in a shop: a real Vendure builds them, and is told once that they are paid.

use crate::support::{
    checkouts::World,
    load::together,
    service::{Answer, Service, eventually},
    vendure::{self, Vendure},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Calls with the master key.
pub fn as_master(service: &Service, function: &str, params: &Value) -> Answer {
    let request = service.request(&service.http, function, params);
    let request = request.header("X-Backend-Master-Key", service.master_key());
    Service::answer(request.send().unwrap()).unwrap()
}

/// The registration of a channel of the shop, which is asked at this place.
fn registration(world: &World, shop: &Vendure, channel: &str, place: &str) -> Value {
    json!({
        "channelToken": shop.channel(channel), "appId": world.app, "storeId": channel,
        "adminApiUrl": shop.admin_api_url(place), "adminToken": shop.token("session"),
        "label": "The shop",
    })
}

fn order(world: &World, store: &str, sku: &str, quantity: u32) -> Value {
    json!({
        "flow": "commerce", "appId": world.app, "storeId": store,
        "lineItems": [{"sku": sku, "quantity": quantity}],
        "customer": {"email": "ada@example.com", "name": "Ada Lovelace"},
        "shippingAddress": {"line1": "1 Long Street", "city": "Lagos", "country": "NG"},
    })
}

#[test]
fn an_order_is_built_in_the_shop_paid_and_settled_once() {
    let test = "an_order_is_built_in_the_shop_paid_and_settled_once";
    if !vendure::is_here(test) {
        return;
    }
    let shop = Vendure::start();
    let host = shop.ready["base"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let Some(mut world) = World::new(test, &[("SVC_SHOP_PRIVATE_HOSTS", &host)]) else { return };
    shop.product("ng", "tea", 100_000, Some(10));

    // Only the master key registers channels, and the token must open them.
    let place = registration(&world, &shop, "ng", "e2e");
    let refused =
        world.service.call(Some(&world.ada), "svc_admin_registerCommerceChannel", place.clone());
    assert_eq!(refused.refusal(), (403, 403));
    let register =
        |params: &Value| as_master(&world.service, "svc_admin_registerCommerceChannel", params);
    let mut wrong = place.clone();
    wrong["adminToken"] = json!("another");
    assert_eq!(register(&wrong).refusal(), (400, 142));
    for inside in [
        format!("{}/backend/functions/health", world.service.url),
        "http://169.254.169.254/latest/meta-data".into(),
        "https://127.0.0.1:1/admin-api".into(),
        "https://localhost/admin-api".into(),
    ] {
        let mut elsewhere = place.clone();
        elsewhere["adminApiUrl"] = json!(inside);
        let refused = register(&elsewhere);
        assert_eq!(refused.refusal(), (400, 142), "{inside}: {}", refused.body);
    }
    // On the command line, the key comes from standard input or from a variable.
    let to = ["--api-url", &world.service.url, "--application-id", &world.service.application_id];
    let command = |args: &[&str], variables: &[(&str, &str)], input: &str| -> Value {
        let done =
            world.service.cli_with(&[&["call"], args, &to, &["--json"]].concat(), variables, input);
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    };
    let (key, parameters) = (world.service.master_key(), place.to_string());
    let register_by_command =
        ["--master-key-stdin", "svc_admin_registerCommerceChannel", &parameters];
    let row = command(&register_by_command, &[], &format!("{key}\n"));
    let listed =
        command(&["svc_admin_getCommerceChannels"], &[("SVC_MASTER_KEY", key.as_str())], "");
    assert_eq!(listed["items"][0]["id"], row["id"], "{listed}");
    assert_eq!(
        (&row["storeId"], row["adminToken"].as_str().unwrap().contains("session")),
        (&json!("ng"), false)
    );
    let mut renamed = place.clone();
    renamed["label"] = json!("The tea shop");
    assert_eq!(row["check"], "passed", "{row}");

    // Only a changed address or token needs the shop, and a shop that is away is registered all the same.
    shop.tell(&json!({"do": "fail", "place": "e2e", "always": true, "how": {"status": 503}}));
    let again = register(&renamed).ok();
    assert_eq!((&again["id"], &again["label"]), (&row["id"], &renamed["label"]), "it changes");
    assert_eq!(again["check"], "passed", "{again}");
    let mut away = place.clone();
    away["adminToken"] = json!("another-token-of-the-administrator");
    let kept = register(&away).ok();
    assert_eq!((&kept["id"], &kept["check"]), (&row["id"], &json!("failed")), "{kept}");
    assert!(kept["checkMessage"].as_str().unwrap().contains("did not answer"), "{kept}");
    shop.tell(&json!({"do": "heal", "place": "e2e"}));
    assert_eq!(register(&away).refusal(), (400, 142), "the shop does not know this token");
    assert_eq!(register(&renamed).ok()["check"], "passed");

    // The shop says what is to be paid; nobody else can.
    for (field, value) in [("amount", json!(1)), ("currency", json!("NGN"))] {
        let mut cheap = order(&world, "ng", "tea", 1);
        cheap[field] = value;
        assert_eq!(world.create(&cheap, field).refusal(), (400, 142));
    }
    let mut priced = order(&world, "ng", "tea", 1);
    priced["lineItems"][0]["unitAmount"] = json!(1);
    assert_eq!(world.create(&priced, "priced").refusal(), (400, 142));
    let opened = together(16, |_| world.create(&order(&world, "ng", "tea", 2), "cart").ok());
    let references: BTreeSet<_> =
        opened.iter().map(|opened| opened["reference"].to_string()).collect();
    assert_eq!(references.len(), 1, "one cart, one checkout");
    let reference = opened[0]["reference"].clone();
    let code = world.get(&reference)["orderCode"].clone();
    assert!(opened[0]["amount"].as_u64() > Some(200_000), "with taxes and shipping: {}", opened[0]);
    assert_eq!(shop.order_with_code("ng", &code)["state"], "ArrangingPayment");
    world.provider.pay(reference.as_str().unwrap());
    world.reaches(&reference, "settled");
    let paid = shop.order_with_code("ng", &code);
    assert_eq!(paid["state"], "PaymentSettled");
    assert_eq!(paid["payments"].as_array().unwrap().len(), 1, "{paid}");
    assert_eq!(paid["payments"][0]["transactionId"], reference);
    assert_eq!(world.verify(&reference)["orderCode"], code);
    let asked = shop.requests("e2e");
    assert_eq!(asked.iter().filter(|it| *it == "Pay").count(), 1);

    // A plan whose price is the total: the first payment settles the order, and renewals make none.
    let total = opened[0]["amount"].clone();
    let currency = opened[0]["currency"].clone();
    for (code, amount) in [("PLN_tea", total.clone()), ("PLN_other", json!(500))] {
        world.tell(json!({"do": "plan", "code": code, "amount": amount, "currency": currency}));
    }
    let mut planned = order(&world, "ng", "tea", 2);
    planned["paymentPlanCode"] = json!("PLN_other");
    let refused = world.create(&planned, "another price");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    assert!(refused.body["error"].as_str().unwrap().contains("5.00"), "{}", refused.body);
    planned["paymentPlanCode"] = json!("PLN_tea");
    let reference = world.opened(&planned, "plan");
    let code = world.get(&reference)["orderCode"].clone();
    world.provider.pay(reference.as_str().unwrap());
    let settled = world.reaches(&reference, "settled");
    assert_eq!(settled["paymentPlanCode"], "PLN_tea", "{settled}");
    assert!(settled["subscriptionId"].is_string(), "{settled}");
    assert_eq!(shop.order_with_code("ng", &code)["state"], "PaymentSettled");
    let paid = |shop: &Vendure| shop.requests("e2e").iter().filter(|it| *it == "Pay").count();
    assert_eq!(paid(&shop), 2);
    let subscriptions = json!({"appId": world.app});
    let subscription = world.call("svc_getSubscriptions", subscriptions)["items"][0].clone();
    world.provider.renew(subscription["providerId"].as_str().unwrap(), true);
    eventually("the renewal is recorded", || {
        let now = world.call("svc_getSubscriptions", json!({"appId": world.app}));
        now["items"][0]["currentPeriodEnd"] != subscription["currentPeriodEnd"]
    });
    assert_eq!(paid(&shop), 2, "a renewal makes no order");

    // Not so many are there, and nothing is left behind.
    let refused = world.create(&order(&world, "ng", "tea", 50), "many");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    assert!(refused.body["error"].as_str().unwrap().contains('6'), "{}", refused.body);
    let refused = world.create(&order(&world, "ng", "coffee", 1), "unknown");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);

    // The shop is away between payment and settlement; the service is killed meanwhile.
    let reference = world.opened(&order(&world, "ng", "tea", 1), "away");
    let code = world.get(&reference)["orderCode"].clone();
    shop.tell(&json!({"do": "fail", "place": "e2e", "always": true, "how": {"status": 503}}));
    world.provider.pay(reference.as_str().unwrap());
    eventually("it is paid", || world.verify(&reference)["status"] == "paid");
    eventually("it is tried", || !world.get(&reference)["problem"].is_null());
    assert_eq!(shop.order_with_code("ng", &code)["payments"], json!([]));
    world.service.kill();
    world.service.boot();
    assert_eq!(world.verify(&reference)["status"], "paid");
    let administrator = world.service.administrator();
    let unsettled =
        world.service.call(Some(&administrator), "svc_admin_getUnsettledCheckouts", json!({}));
    assert_eq!(unsettled.ok()["items"][0]["reference"], reference);
    shop.tell(&json!({"do": "heal", "place": "e2e"}));
    world.call("svc_settleCheckout", json!({"reference": reference}));
    world.reaches(&reference, "settled");
    assert_eq!(shop.order_with_code("ng", &code)["payments"].as_array().unwrap().len(), 1);
    world.check();
}
