//! Subscriptions of buyers, with Paystack and with Stripe.

use crate::support::{
    checkouts::{BUYER, World},
    service::{Person, eventually},
};
use serde_json::json;

#[test]
fn a_subscription_opens_a_gate_and_raises_a_tier() {
    let test = "a_subscription_opens_a_gate_and_raises_a_tier";
    let Some(mut world) = World::new(test, &[]) else { return };
    world.service.stop();
    let app = world.app.as_str().unwrap().to_owned();
    world.service.set("SVC_PLATFORM_APP", &app);
    world.service.set("SVC_PLATFORM_PLANS", "PLN_pro=professional,PLN_dev=developer");
    world.service.boot();
    let bob = world.service.register_free("bob");
    let tier = |who: &Person| {
        world.service.call(Some(who), "getCurrentUser", json!({})).ok()["tier"].clone()
    };
    assert_eq!(tier(&bob), "free");
    world.tell(json!({"do": "plan", "code": "PLN_pro", "name": "Pro", "amount": 500_000, "currency": "NGN"}));
    let check = |email: &str| {
        world
            .service
            .call(None, "svc_subscriptions_check", json!({"email": email, "appId": world.app}))
            .ok()
    };
    assert_eq!(
        check(&bob.email),
        json!({"active": false, "planCode": null, "status": null, "currentPeriodEnd": null})
    );

    let order = json!({
        "flow": "direct", "appId": world.app, "paymentPlanCode": "PLN_pro",
        "customer": {"email": bob.email},
    });
    let mut wrong = order.clone();
    wrong["amount"] = json!(1);
    let refused = world.create(&wrong, "wrong");
    assert_eq!(refused.refusal(), (400, 141), "{}", refused.body);
    let opened = world.create(&order, "bob").ok();
    assert_eq!(opened["amount"], 500_000, "the price of the plan");
    let reference = &opened["reference"];
    world.tell(json!({"do": "pay", "reference": reference}));
    let settled = world.reaches(reference, "settled");
    assert!(settled["subscriptionId"].is_string(), "{settled}");
    let status = world.verify(reference);
    assert_eq!(status["subscription"]["active"], true, "{status}");
    let active = check(&bob.email.to_uppercase());
    assert_eq!(
        (&active["active"], &active["planCode"]),
        (&json!(true), &json!("PLN_pro")),
        "{active}"
    );
    eventually("the tier is raised", || tier(&bob) == "professional");
    let limit =
        world.service.call(Some(&bob), "getCurrentUser", json!({})).headers["x-ratelimit-limit"]
            .clone();
    assert_eq!(limit, "1000", "with the next call");

    // A renewal fails, and the buyer keeps the plan while Paystack tries again; then it is over.
    let listed =
        world.call("svc_getSubscriptions", json!({"appId": world.app, "email": bob.email}));
    let code = listed["items"][0]["providerId"].clone();
    world.provider.renew(code.as_str().unwrap(), false);
    eventually("the renewal failed", || check(&bob.email)["status"] == "pastDue");
    assert_eq!(
        (check(&bob.email)["active"].clone(), tier(&bob)),
        (json!(true), json!("professional"))
    );
    world.provider.cancel(code.as_str().unwrap(), true);
    eventually("it is over", || check(&bob.email)["active"] == false);
    eventually("the tier is lowered", || tier(&bob) == "free");

    // Somebody pays before registering.
    let mut early = order.clone();
    early["customer"] = json!({"email": "carol@example.com"});
    let reference = world.opened(&early, "carol");
    world.tell(json!({"do": "pay", "reference": reference}));
    world.reaches(&reference, "settled");
    assert_eq!(tier(&world.service.register_free("carol")), "professional");
    world.check();
}

#[test]
fn a_buyer_pays_and_subscribes_with_stripe() {
    let Some(world) = World::stripe("a_buyer_pays_and_subscribes_with_stripe") else { return };
    let mut order = world.order();
    order["currency"] = json!("EUR");
    let mut without = order.clone();
    without.as_object_mut().unwrap().remove("currency");
    let opened = world.create(&without, "account").ok();
    assert_eq!(opened["currency"], "EUR", "the default currency of the account");
    let dinars = json!([
        {"name": "Tea", "unitAmount": 5_120, "quantity": 1},
        {"name": "Cup", "unitAmount": 5_124, "quantity": 1},
    ]);
    without["lineItems"] = dinars;
    without.as_object_mut().unwrap().remove("amount");
    without["currency"] = json!("KWD");
    let refused = world.create(&without, "dinars");
    assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
    assert_eq!(refused.body["details"][0]["field"], "lineItems[1].unitAmount", "{}", refused.body);
    // Nobody asks for a look in these payments: the signed notices do.
    let reference = world.opened(&order, "a");
    world.provider.pay(reference.as_str().unwrap());
    let settled = world.reaches(&reference, "settled");
    assert_eq!(settled["paid"], json!({"amount": 450_000, "currency": "EUR"}), "{settled}");
    let notices = world.provider.deliveries();
    assert!(notices.iter().all(|notice| notice["status"] == 200), "{notices:?}");
    let body = notices[0]["body"].as_str().unwrap().to_owned();
    let post = |signature: &str| {
        let request = world.service.http.post(world.webhook()).body(body.clone());
        let request = request.header("Content-Type", "application/json");
        request.header("Stripe-Signature", signature).send().unwrap().status().as_u16()
    };
    let signed = notices[0]["headers"]["stripe-signature"].as_str().unwrap();
    assert_eq!(post(signed), 200, "twice");
    assert_eq!(post(&signed.replace("v1=", "v1=0")), 401);
    assert_eq!(post("t=1,v1=00"), 401);

    // The answer of the provider is lost: the same page is opened again.
    world.provider.fail("/v1/checkout/sessions", &json!("cutAfter"));
    let mut answer = world.create(&order, "lost");
    if answer.status != 200 {
        assert_eq!(answer.refusal(), (503, 100), "{}", answer.body);
        answer = world.create(&order, "lost");
    }
    let reference = answer.ok()["reference"].clone();
    world.provider.pay(reference.as_str().unwrap());
    world.reaches(&reference, "settled");
    world.provider.refund(reference.as_str().unwrap(), 1_000);
    eventually("the refund", || world.get(&reference)["refundedAmount"] == 1_000);

    let price = json!({"do": "price", "id": "price_pro", "name": "Pro", "amount": 900, "currency": "eur", "interval": "month"});
    world.tell(price);
    let plan = json!({
        "flow": "direct", "appId": world.app, "paymentPlanCode": "price_pro",
        "customer": {"email": BUYER},
    });
    let reference = world.opened(&plan, "plan");
    world.provider.pay(reference.as_str().unwrap());
    let settled = world.reaches(&reference, "settled");
    assert!(settled["subscriptionId"].is_string(), "{settled}");
    let check = json!({"email": BUYER, "appId": world.app});
    let check = || world.service.call(None, "svc_subscriptions_check", check.clone()).ok();
    assert_eq!(
        (check()["active"].clone(), check()["planCode"].clone()),
        (json!(true), json!("price_pro"))
    );
    world.check();
}
