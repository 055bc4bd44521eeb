//! Checkouts with Paystack, and with a shop that runs on Vendure.

use crate::support::{
    checkouts::{BUYER, World},
    load::together,
    payments::SECRET_KEY,
    service::eventually,
};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Instant};

/// A service, and an app that takes payments with a stub of Paystack.
#[test]
fn a_buyer_pays_and_a_closed_page_loses_nothing() {
    let Some(world) = World::new("a_buyer_pays_and_a_closed_page_loses_nothing", &[]) else {
        return;
    };
    let order = world.order();
    let first = world.create(&order, "cart-1").ok();
    assert_eq!((&first["amount"], &first["currency"]), (&json!(450_000), &json!("NGN")));
    assert_eq!(world.create(&order, "cart-1").ok(), first, "the same call, the same checkout");
    let mut other = order.clone();
    other["amount"] = json!(1);
    assert_eq!(world.create(&other, "cart-1").refusal(), (400, 142), "with other parameters");
    let reference = &first["reference"];
    assert_eq!(world.verify(reference)["status"], "pending");

    // The buyer pays on the page, which sends the browser back with the reference.
    let page = first["checkoutUrl"].as_str().unwrap();
    let browser = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none());
    let paid = browser.build().unwrap().post(page).body("action=pay").send().unwrap();
    let back = paid.headers()["location"].to_str().unwrap();
    let expected = format!(
        "https://shop.example.com/thanks?trxref={0}&reference={0}",
        reference.as_str().unwrap()
    );
    assert_eq!(back, expected);
    let status = world.verify(reference);
    assert_eq!((&status["status"], &status["amount"]), (&json!("paid"), &json!(450_000)));
    let checkout = world.reaches(reference, "settled");
    assert_eq!(checkout["paid"], json!({"amount": 450_000, "currency": "NGN"}), "{checkout}");

    // Another buyer closes the page after paying: the notice alone tells it.
    let second = world.opened(&order, "cart-2");
    world.tell(json!({"do": "pay", "reference": second}));
    world.reaches(&second, "settled");

    // A third one's notice is lost, the page is the service's own.
    world.tell(json!({"do": "receiver", "url": null}));
    let mut without = order.clone();
    without.as_object_mut().unwrap().remove("callbackUrl");
    let third = world.opened(&without, "cart-3");
    let own = format!("{}/checkouts/{}", world.service.url, third.as_str().unwrap());
    let page_in = |language: &str| {
        let page = world.service.http.get(&own).header("Accept-Language", language).send();
        page.unwrap().text().unwrap()
    };
    let shown = |text: &str| page_in("en").contains(text);
    assert!(shown("is not confirmed yet") && shown("4,500.00\u{a0}NGN"));
    assert!(page_in("de").contains("Ihre Zahlung von 4.500,00\u{a0}NGN ist noch nicht"));
    world.tell(json!({"do": "pay", "reference": third}));
    eventually("the page thanks", || shown("Thank you"));

    // A declined card, then another one.
    let fourth = world.opened(&order, "cart-4");
    world.provider.decline(fourth.as_str().unwrap());
    assert_eq!(world.verify(&fourth)["status"], "failed");
    assert_eq!(world.get(&fourth)["problem"], "Insufficient Funds");
    world.tell(json!({"do": "pay", "reference": fourth}));
    eventually("it is paid", || world.verify(&fourth)["status"] == "paid");

    // Refunds and disputes are recorded.
    world.listen();
    world.provider.refund(fourth.as_str().unwrap(), 50_000);
    eventually("the refund", || world.get(&fourth)["refundedAmount"] == 50_000);
    world.provider.dispute(fourth.as_str().unwrap(), "open");
    eventually("the dispute", || world.get(&fourth)["dispute"] == "open");
    assert_eq!(world.verify(&fourth)["status"], "paid");
    let listed = world.call("svc_getCheckouts", json!({"appId": world.app, "state": "settled"}));
    assert_eq!(listed["items"].as_array().unwrap().len(), 4, "{listed}");
    world.check();
}

/// The signature of Paystack for a notice.
fn sign(key: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha512>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

#[test]
fn six_hundred_notices_a_minute_are_taken_and_a_later_one_again() {
    let test = "six_hundred_notices_a_minute_are_taken_and_a_later_one_again";
    let Some(world) = World::new(test, &[]) else { return };
    // It is about nothing that the service keeps.
    let told = json!({"event": "transfer.success", "data": {}}).to_string();
    let post = || world.post(&told, &sign(SECRET_KEY, &told));
    let begun = Instant::now();
    let (passed, (status, body)) =
        (0..5_000).map(|n| (n, post())).find(|(_, (status, _))| *status != 200).unwrap();
    let regained = 10 * (begun.elapsed().as_secs() + 1);
    assert_eq!((status, &body["code"]), (429, &json!(429)));
    assert!((600..=600 + regained).contains(&passed), "{passed} of 600 passed");
    eventually("the provider sends it again", || post().0 == 200);
}

#[test]
fn what_is_not_the_payment_that_was_asked_for_settles_nothing() {
    let test = "what_is_not_the_payment_that_was_asked_for_settles_nothing";
    let Some(world) = World::new(test, &[]) else { return };
    let order = world.order();

    // Forged notices change nothing, and are refused.
    let reference = world.opened(&order, "a");
    let told =
        json!({"event": "charge.success", "data": {"reference": reference, "status": "success"}});
    let told = told.to_string();
    for signature in [sign("sk_test_another", &told), "00".repeat(64), "nonsense".into()] {
        assert_eq!(world.post(&told, &signature).0, 401);
    }
    // One that the provider signed, and that says more than is true, lets the service look.
    assert_eq!(world.post(&told, &sign(SECRET_KEY, &told)).0, 200);
    // The look of a verification comes after that one.
    assert_eq!(world.verify(&reference)["status"], "pending");
    assert_eq!(world.get(&reference)["state"], "awaitingPayment");

    // A replayed notice of a payment settles it once.
    world.tell(json!({"do": "pay", "reference": reference}));
    let settled = world.reaches(&reference, "settled");
    for _ in 0..3 {
        let again = world.tell(json!({"do": "redeliver", "index": -1}));
        assert_eq!(again["delivery"]["status"], 200, "{again}");
    }
    let after = world.get(&reference);
    assert_eq!((&after["state"], &after["settledAt"]), (&settled["state"], &settled["settledAt"]));

    // Another sum, and another currency.
    for (name, wrong) in [("b", json!({"amount": 449_999})), ("c", json!({"currency": "GHS"}))] {
        let reference = world.opened(&order, name);
        let mut pay = json!({"do": "pay", "reference": reference});
        pay.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        // Paystack asks for what the page says.
        if let Some(amount) = wrong.get("amount") {
            world.tell(json!({"do": "change", "reference": reference, "requested_amount": amount}));
        }
        world.tell(pay);
        let checkout = world.reaches(&reference, "amountMismatch");
        assert!(checkout["problem"].as_str().unwrap().contains("was to be paid"), "{checkout}");
        assert_eq!(world.verify(&reference)["status"], "failed");
        let settle = json!({"reference": reference});
        let refused = world.service.call(Some(&world.ada), "svc_settleCheckout", settle);
        assert_eq!(refused.refusal(), (409, 119));
    }
    let administrator = world.service.administrator();
    let unsettled = || {
        let listed =
            world.service.call(Some(&administrator), "svc_admin_getUnsettledCheckouts", json!({}));
        listed.ok()["items"].as_array().unwrap().len()
    };
    assert_eq!(unsettled(), 2);
    let metrics = world.service.http.get(format!("{}/metrics", world.service.url)).send().unwrap();
    assert!(metrics.text().unwrap().contains("\nsvc_checkouts_unsettled 2\n"));
    assert!(world.service.log().contains("is not settled"), "somebody is told");

    // Somebody else's reference: of another app, and of nobody.
    let (_, other) = world.service.project_with_app(&world.service.register("eve"), None);
    let foreign = json!({"reference": "chk-01J9ZQ8F5W7V3T6M2K4N8R0P1S"});
    assert_eq!(world.service.call(None, "svc_checkout_verify", foreign).refusal(), (404, 101));
    let mut elsewhere = order.clone();
    elsewhere["appId"] = other;
    assert_eq!(world.create(&elsewhere, "d").refusal(), (409, 119), "that app takes no payments");

    // Fifty clients that verify at once cost Paystack a look or two.
    let reference = world.opened(&order, "e");
    let before = world.looks();
    let statuses = together(50, |_| world.verify(&reference)["status"].clone());
    assert_eq!(statuses.into_iter().map(|s| s.to_string()).collect::<BTreeSet<_>>().len(), 1);
    assert!(world.looks() - before <= 3, "{} looks", world.looks() - before);
    // Sixteen callers with one request id get one checkout.
    let made = together(16, |_| world.opened(&order, "f").to_string());
    assert_eq!(made.into_iter().collect::<BTreeSet<_>>().len(), 1);
    world.check();
}

#[test]
fn a_refusal_says_what_to_do_and_an_absence_is_waited_for() {
    let test = "a_refusal_says_what_to_do_and_an_absence_is_waited_for";
    let Some(world) = World::new(test, &[]) else { return };
    let order = world.order();
    let with = |field: &str, value: Value| {
        let mut order = order.clone();
        order[field] = value;
        order
    };
    for (params, field) in [
        (with("currency", json!("QQQ")), "currency"),
        (with("amount", json!(0)), "amount"),
        (with("amount", json!(1.5)), "amount"),
        (with("lineItems", json!([{"name": "Tea", "unitAmount": 1, "quantity": 1}])), "lineItems"),
        (with("shippingMethod", json!("post")), "shippingMethod"),
        (with("flow", json!("commerce")), "amount"),
    ] {
        let refused = world.service.call(None, "svc_checkout_create", params.clone());
        assert_eq!(refused.refusal(), (400, 142), "{params}");
        assert_eq!(refused.body["details"][0]["field"], field, "{}", refused.body);
    }
    let refused = world.create(&with("currency", json!("EGP")), "y");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    assert!(refused.body["error"].as_str().unwrap().contains("Currency not supported"));

    // Nobody answers; then the same call gets its checkout.
    world.tell(json!({"do": "fail", "path": "initialize", "times": 1000, "how": {"status": 503}}));
    let refused = world.create(&order, "z");
    assert_eq!(refused.refusal(), (503, 100));
    assert!(refused.headers.contains_key("retry-after"));
    world.tell(json!({"do": "heal"}));
    eventually("it is opened", || world.create(&order, "z").status == 200);

    // The provider's answer is lost: the buyer gets a page all the same, and pays once.
    world.tell(json!({"do": "fail", "path": "initialize", "how": "cutAfter"}));
    let mut answer = world.create(&order, "lost");
    for _ in 0..5 {
        if answer.status == 200 {
            break;
        }
        assert_eq!(answer.refusal(), (503, 100), "{}", answer.body);
        answer = world.create(&order, "lost");
    }
    let reference = answer.ok()["reference"].clone();
    world.tell(json!({"do": "pay", "reference": reference}));
    world.reaches(&reference, "settled");

    // A key that is revoked, and another one.
    let reference = world.opened(&order, "revoked");
    let another = "sk_test_89abcdef0123456789abcdef0123456789abcdef";
    world.tell(json!({"do": "rotate", "secretKey": another}));
    world.tell(json!({"do": "pay", "reference": reference}));
    let verified = world.service.call(None, "svc_checkout_verify", json!({"reference": reference}));
    assert_eq!(verified.refusal(), (503, 100), "{}", verified.body);
    let stored = world.store_key(another);
    let checked = world.call("svc_checkCredential", json!({"credentialId": stored["id"]}));
    assert_eq!(checked["check"]["ok"], true, "{checked}");
    assert_eq!(
        (&checked["facts"]["live"], &checked["facts"]["keyHint"]),
        (&json!(false), &json!("…cdef"))
    );
    eventually("it is paid", || {
        let params = json!({"reference": reference});
        let verified = world.service.call(None, "svc_checkout_verify", params);
        verified.body["result"]["status"] == "paid"
    });
    let administrator = world.service.administrator();
    let used = json!({"function": "useCredential", "resource": stored["id"]});
    let uses = world.service.call(Some(&administrator), "svc_admin_getAuditLog", used).ok();
    assert!(uses["items"].as_array().unwrap().len() >= 4, "{uses}");
    world.check();
}

#[test]
fn a_price_without_a_currency_has_that_of_the_account() {
    let test = "a_price_without_a_currency_has_that_of_the_account";
    let Some(world) = World::new(test, &[]) else { return };
    let without = |price: Value| {
        let mut order = json!({
            "flow": "direct", "appId": world.app, "storeId": "tea", "customer": {"email": BUYER},
        });
        order.as_object_mut().unwrap().extend(price.as_object().unwrap().clone());
        order
    };
    let amount = without(json!({"amount": 1000}));
    let made = together(16, |n| world.create(&amount, &format!("n{n}")).ok()["currency"].clone());
    assert_eq!(made, vec![json!("NGN"); 16], "that of the balance");
    let asked = world.provider.requests("/balance").len();
    let items = json!([{"name": "Tea", "unitAmount": 250, "quantity": 3}]);
    let opened = world.create(&without(json!({"lineItems": items})), "items").ok();
    assert_eq!((&opened["amount"], &opened["currency"]), (&json!(750), &json!("NGN")));
    assert_eq!(world.provider.requests("/balance").len(), asked, "it is asked once");

    // Of several balances, Paystack does not say which one is meant.
    let listed = world.call("svc_getCredentials", json!({"appId": world.app}));
    let credential = listed["items"][0].clone();
    assert_eq!(
        (&credential["currency"], &credential["accountCurrency"]),
        (&json!(null), &json!("NGN"))
    );
    world.tell(json!({"do": "balances", "currencies": ["NGN", "USD"]}));
    world.call("svc_checkCredential", json!({"credentialId": credential["id"]}));
    let refused = world.create(&amount, "several");
    assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
    let problem = refused.body["details"][0]["problem"].as_str().unwrap();
    assert_eq!(refused.body["details"][0]["field"], "currency", "{}", refused.body);
    assert!(problem.contains("NGN, USD") && problem.contains("svc_updateCredential"), "{problem}");
    let update = |currency: Value| {
        let params = json!({"credentialId": credential["id"], "currency": currency});
        world.service.call(Some(&world.ada), "svc_updateCredential", params)
    };
    assert_eq!(update(json!("GHS")).ok()["currency"], "GHS");
    assert_eq!(world.create(&amount, "chosen").ok()["currency"], "GHS");
    world.store_key(SECRET_KEY);
    assert_eq!(world.create(&amount, "replaced").ok()["currency"], "GHS", "a new key keeps it");
    let refused = update(json!("EUR"));
    assert_eq!(refused.refusal(), (400, 142), "Paystack takes no euros: {}", refused.body);
    update(json!(null)).ok();
    assert_eq!(world.create(&amount, "cleared").refusal(), (400, 142));

    // What Paystack does not count is not sent, and each wrong field is named.
    let opened = world.provider.requests("/transaction/initialize").len();
    let refused = world.create(&without(json!({"amount": 1000, "currency": "EUR"})), "euros");
    assert_eq!(refused.body["details"][0]["field"], "currency", "{}", refused.body);
    let items = json!([{"name": "Tea", "quantity": 0}, {"sku": "tea", "quantity": 1}]);
    let wrong = json!({"lineItems": items, "currency": "QQQ", "shippingMethod": "post"});
    let refused = world.create(&without(wrong), "wrong");
    let details = refused.body["details"].as_array().unwrap();
    let fields: Vec<_> = details.iter().map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "shippingMethod",
            "currency",
            "lineItems[0].quantity",
            "lineItems[0].unitAmount",
            "lineItems[1]"
        ]
    );
    assert_eq!(world.provider.requests("/transaction/initialize").len(), opened);

    // A plan goes with an amount or with lines that make its price.
    let plan = json!({"do": "plan", "code": "PLN_tea", "name": "Tea", "amount": 500_000, "currency": "NGN"});
    world.tell(plan);
    let planned = |like: Value| {
        let mut order = without(like);
        order["paymentPlanCode"] = json!("PLN_tea");
        order
    };
    let items = |unit: u64| json!([{"name": "Tea", "unitAmount": unit, "quantity": 2}]);
    for (n, like) in [json!({"lineItems": items(250_000)}), json!({"amount": 500_000}), json!({})]
        .into_iter()
        .enumerate()
    {
        let opened = world.create(&planned(like), &format!("plan{n}")).ok();
        assert_eq!((&opened["amount"], &opened["currency"]), (&json!(500_000), &json!("NGN")));
    }
    let refused = world.create(&planned(json!({"lineItems": items(200_000)})), "less");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    let said = refused.body["error"].as_str().unwrap();
    assert!(said.contains("5000.00 NGN") && said.contains("4000.00 NGN"), "{said}");
    let refused = world.create(&planned(json!({"currency": "GHS"})), "other");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    world.check();
}
