//! Pages on which buyers pay: opened once, whatever is lost on the way.

use super::world::{World, key, order, own_world, priced, reference, refusal, world};
use payments::{
    PaymentStatus, Provider, ProviderKey, RemoteError, SecretText, StripeKey, paystack::Paystack,
};
use serde_json::json;
use test_support::payments::has_paystack;

#[tokio::test]
async fn a_page_is_opened_and_paid() {
    if !has_paystack("a_page_is_opened_and_paid") {
        return;
    }
    let world = world();
    let order = order(reference(1));
    assert_eq!(world.paystack.payment(&world.key, order.reference, None).await, Ok(None));
    let opened = world.paystack.open(&world.key, &order).await.unwrap();
    let url = opened.url.unwrap().to_string();
    assert!(url.starts_with(&format!("{}/pay/", world.rig.address)), "{url}");
    assert!(opened.access_code.is_some() && opened.expires_at.is_none());
    assert_eq!(world.payment(order.reference).await.status, PaymentStatus::Abandoned);

    world.tell(json!({"do": "decline", "reference": order.reference, "reason": "Declined"}));
    let declined = world.payment(order.reference).await;
    assert_eq!(declined.status, PaymentStatus::Failed("Declined".into()));

    // The buyer pays on the page, and comes back with the reference.
    let page = reqwest::get(&url).await.unwrap().text().await.unwrap();
    assert!(page.contains("NGN 50.00") && page.contains("Declined"), "{page}");
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let pay = browser.build().unwrap().post(&url).body("action=pay").send().await.unwrap();
    let back = pay.headers()["location"].to_str().unwrap();
    assert!(back.starts_with("https://shop.example.com/done?from=app&"), "{back}");
    assert!(back.ends_with(&format!("&reference={}", order.reference)), "{back}");
    let paid = world.payment(order.reference).await;
    assert_eq!(paid.status, PaymentStatus::Paid);
    assert_eq!(paid.reference, Some(order.reference.to_string()));
    assert_eq!(paid.amount, Some(order.total));
    assert!(paid.paid_at.is_some() && paid.id.is_some() && paid.customer.is_some());
    assert_eq!((paid.refunded, paid.dispute, paid.plan), (0, None, None));
    assert_eq!(world.paystack.close(&world.key, "any").await, Ok(false));
    world.rig.check();
}

#[tokio::test]
async fn nobody_is_asked_to_pay_a_reference_twice() {
    if !has_paystack("nobody_is_asked_to_pay_a_reference_twice") {
        return;
    }
    // A rig of its own: failures fit requests of other tests too.
    let world = own_world();
    let order = order(reference(2));
    // Cut before it was done: it can be done again, and is.
    world.rig.fail("/transaction/initialize", &json!("cutBefore"));
    let lost = world.paystack.open(&world.key, &order).await.unwrap_err();
    assert!(matches!(lost, RemoteError::Unclear(_)), "{lost:?}");
    assert!(world.paystack.open(&world.key, &order).await.unwrap().url.is_some());

    // Cut after it was done: the page is there, and its address is lost.
    let lost_one = super::world::order(reference(3));
    world.rig.fail("/transaction/initialize", &json!("cutAfter"));
    let lost = world.paystack.open(&world.key, &lost_one).await.unwrap_err();
    assert!(matches!(lost, RemoteError::Unclear(_)), "{lost:?}");
    for _ in 0..2 {
        let again = world.paystack.open(&world.key, &lost_one).await.unwrap();
        assert_eq!((again.url, again.access_code), (None, None));
    }
    // Two at once: one gets the page.
    let twice = super::world::order(reference(12));
    let open = || world.paystack.open(&world.key, &twice);
    let (one, other) = tokio::join!(open(), open());
    assert!(one.unwrap().url.is_some() ^ other.unwrap().url.is_some());

    let known = world.payment(lost_one.reference).await;
    assert_eq!(known.status, PaymentStatus::Abandoned);

    world.rig.pay(&order.reference.to_string());
    assert_eq!(world.paystack.open(&world.key, &order).await.unwrap().url, None);
    assert_eq!(world.rig.charges(&order.reference.to_string()), 1);
    assert_eq!(world.rig.charges(&lost_one.reference.to_string()), 0);
    world.rig.check();
}

#[tokio::test]
async fn what_is_no_answer_is_told_from_a_refusal() {
    if !has_paystack("what_is_no_answer_is_told_from_a_refusal") {
        return;
    }
    let World { rig, paystack, key: own } = own_world();
    let order = order(reference(4));
    for status in [500, 502, 503, 408] {
        rig.fail("/transaction/initialize", &json!({"status": status}));
        let unclear = paystack.open(&own, &order).await.unwrap_err();
        assert!(matches!(unclear, RemoteError::Unclear(_)), "{status}: {unclear:?}");
        rig.fail("/transaction/verify", &json!({"status": status}));
        let busy = paystack.payment(&own, order.reference, None).await.unwrap_err();
        assert!(matches!(busy, RemoteError::Busy { .. }), "{status}: {busy:?}");
    }
    rig.fail("/transaction/initialize", &json!({"status": 429, "retryAfter": 7}));
    let busy = paystack.open(&own, &order).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { after, .. } if after.as_secs() == 7), "{busy:?}");
    rig.fail("/transaction/verify", &json!("cutAfter"));
    let busy = paystack.payment(&own, order.reference, None).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");
    let gone = Paystack::new("http://127.0.0.1:9").unwrap();
    let busy = gone.open(&own, &order).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");
    assert_eq!(rig.charges(&order.reference.to_string()), 0);
    assert!(
        rig.tell(&json!({"do": "transactions"}))["transactions"].as_array().unwrap().is_empty()
    );
    rig.check();
}

#[tokio::test]
async fn refusals_have_the_words_of_paystack() {
    if !has_paystack("refusals_have_the_words_of_paystack") {
        return;
    }
    let world = world();
    let order = order(reference(5));
    let wrong = key("sk_test_of_somebody_else");
    let said = refusal(world.paystack.open(&wrong, &order).await);
    assert!(said.contains("Replace the credential") && said.contains("Invalid key"), "{said}");
    assert!(!said.contains("sk_test_of"), "{said}");
    let said = refusal(world.paystack.check_access(&wrong).await);
    assert!(said.contains("Invalid key (401 invalid_Key)"), "{said}");
    let access = world.paystack.check_access(&world.key).await.unwrap();
    assert!(access.contains("for tests") && access.contains("NGN"), "{access}");

    let unsold = priced(reference(6), 5000, "RWF");
    let said = refusal(world.paystack.open(&world.key, &unsold).await);
    assert!(
        said.contains("Currency not supported by merchant (403 unsupported_currency)"),
        "{said}"
    );
    let other = StripeKey { secret_key: SecretText("sk_test_1".into()), webhook_secrets: vec![] };
    let said = refusal(world.paystack.open(&ProviderKey::Stripe(other), &order).await);
    assert!(said.contains("one for Stripe"), "{said}");
    world.rig.check();
}

#[tokio::test]
async fn amounts_are_counted_as_paystack_counts_them() {
    if !has_paystack("amounts_are_counted_as_paystack_counts_them") {
        return;
    }
    let world = world();
    let francs = priced(reference(7), 1500, "XOF");
    world.paystack.open(&world.key, &francs).await.unwrap();
    let told = world.rig.tell(&json!({"do": "transactions"}));
    let all = told["transactions"].as_array().unwrap();
    let seen = all.iter().find(|it| it["reference"] == francs.reference.to_string()).unwrap();
    assert_eq!(seen["amount"], 150_000);
    world.rig.pay(&francs.reference.to_string());
    assert_eq!(world.payment(francs.reference).await.amount, Some(francs.total));

    // Nothing is sent in a currency that Paystack does not take.
    let yen = priced(reference(8), 1500, "JPY");
    let said = refusal(world.paystack.open(&world.key, &yen).await);
    assert!(said.contains("Paystack takes no JPY"), "{said}");
    assert_eq!(world.paystack.payment(&world.key, yen.reference, None).await, Ok(None));

    // The buyer pays the fees on top; or pays too little; or in another currency.
    let cases = [
        (9, json!({"extra": 750}), 5000, "NGN"),
        (10, json!({"amount": 4999}), 4999, "NGN"),
        (11, json!({"currency": "GHS"}), 5000, "GHS"),
    ];
    for (number, how, minor, currency) in cases {
        let order = order(reference(number));
        world.paystack.open(&world.key, &order).await.unwrap();
        let mut pay = json!({"do": "pay", "reference": order.reference});
        pay.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        world.tell(pay);
        let paid = world.payment(order.reference).await;
        assert_eq!(paid.status, PaymentStatus::Paid);
        assert_eq!(paid.amount, Some(priced(order.reference, minor, currency).total));
    }
    world.rig.check();
}

#[tokio::test]
async fn in_every_order_of_failures_a_reference_is_charged_once_at_most() {
    if !has_paystack("in_every_order_of_failures_a_reference_is_charged_once_at_most") {
        return;
    }
    const STEPS: u32 = 6;
    let world = own_world();
    for number in 0..STEPS.pow(3) {
        let order = order(reference(1000 + number));
        let text = order.reference.to_string();
        let mut handed_out = false;
        for step in [number % STEPS, number / STEPS % STEPS, number / STEPS.pow(2)] {
            match step {
                0 => {}
                1 => world.rig.fail("/transaction/initialize", &json!("cutBefore")),
                2 => world.rig.fail("/transaction/initialize", &json!("cutAfter")),
                3 => world.rig.fail("/transaction/initialize", &json!({"status": 502})),
                4 => world.rig.fail("/transaction/initialize", &json!({"status": 429})),
                // Whoever has the page pays on it.
                _ if handed_out => world.rig.pay(&text),
                _ => {}
            }
            let opened = world.paystack.open(&world.key, &order).await;
            world.tell(json!({"do": "heal"}));
            handed_out |= matches!(&opened, Ok(opened) if opened.url.is_some());
            let charges = world.rig.charges(&text);
            assert!(charges <= 1, "{number}");
            let payment = world.paystack.payment(&world.key, order.reference, None).await.unwrap();
            let is_paid = payment.is_some_and(|payment| payment.status == PaymentStatus::Paid);
            assert_eq!(is_paid, charges == 1, "{number}");
        }
    }
    world.rig.check();
}
