//! Sessions of Checkout: one for a reference, whatever is lost on the way.

use super::world::{World, key, money, order, own_world, priced, reference, refusal, world};
use payments::{
    PaymentStatus, PaystackKey, Provider, ProviderKey, RemoteError, SecretText, stripe::Stripe,
};
use serde_json::json;
use std::time::Duration;
use test_support::payments::{SECRET_KEY, has_stripe};

#[tokio::test]
async fn a_session_is_opened_and_paid() {
    if !has_stripe("a_session_is_opened_and_paid") {
        return;
    }
    let world = world();
    let order = order(reference(1));
    let opened = world.open(&order).await;
    assert!(opened.url.as_ref().unwrap().as_str().starts_with(&world.rig.address));
    assert_eq!(opened.expires_at.unwrap().as_seconds(), order.expires_at.as_seconds());
    let open = world.payment(order.reference, &opened).await;
    assert_eq!((open.status, open.id), (PaymentStatus::Pending, None));
    let url = opened.url.clone().unwrap().to_string();
    let page = reqwest::get(&url).await.unwrap().text().await.unwrap();
    assert!(page.contains("Bread &amp; butter") && page.contains("50.00"), "{page}");

    world.tell(json!({"do": "decline", "reference": order.reference}));
    let declined = world.payment(order.reference, &opened).await;
    let words = "Your card was declined. (card_declined)";
    assert_eq!(declined.status, PaymentStatus::Failed(words.into()));
    assert_eq!(world.rig.charges(&order.reference.to_string()), 0);

    // The buyer pays on the page, and comes back with the reference.
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let pay = browser.build().unwrap().post(format!("{url}/complete")).send().await.unwrap();
    let back = format!("https://shop.example.com/done?from=app&reference={}", order.reference);
    assert_eq!(pay.headers()["location"], back.as_str());
    let paid = world.payment(order.reference, &opened).await;
    assert_eq!(paid.status, PaymentStatus::Paid);
    assert_eq!(paid.reference, Some(order.reference.to_string()));
    assert_eq!(paid.amount, Some(order.total));
    assert!(paid.paid_at.is_some() && paid.customer.is_some());
    assert_eq!((paid.refunded, paid.dispute, paid.plan), (0, None, None));
    let id = paid.id.unwrap();
    assert!(id.starts_with("pi_"), "{id}");
    let found = world.stripe.reference_of(&world.key, &id).await;
    assert_eq!(found, Ok(Some(order.reference)));
    assert_eq!(world.stripe.reference_of(&world.key, "pi_none").await, Ok(None));
    assert_eq!(world.stripe.payment(&world.key, order.reference, None).await, Ok(None));
    assert_eq!(world.stripe.payment(&world.key, order.reference, Some("cs_no")).await, Ok(None));

    let sessions = world.tell(json!({"do": "sessions"}));
    let seen = &sessions["sessions"][opened.session.unwrap()];
    assert_eq!(seen["metadata"]["reference"], order.reference.to_string());
    assert_eq!(seen["lines"].as_array().unwrap().len(), 2);
    world.rig.check();
}

#[tokio::test]
async fn a_reference_has_one_session_and_is_charged_once() {
    if !has_stripe("a_reference_has_one_session_and_is_charged_once") {
        return;
    }
    let world = own_world();
    for (number, how) in [(2, "cutBefore"), (3, "cutAfter")] {
        let order = order(reference(number));
        world.rig.fail("/v1/checkout/sessions$", &json!(how));
        let lost = world.stripe.open(&world.key, &order).await.unwrap_err();
        assert!(matches!(lost, RemoteError::Busy { .. }), "{how}: {lost:?}");
        let first = world.open(&order).await;
        let again = world.open(&order).await;
        assert_eq!(first, again, "{how}");
        assert!(first.url.is_some());

        world.rig.pay(&order.reference.to_string());
        world.rig.pay(&order.reference.to_string());
        assert_eq!(world.rig.charges(&order.reference.to_string()), 1);
        // The page of what is paid is not shown again, although the stored answer has it.
        let paid = world.open(&order).await;
        assert_eq!((paid.session, paid.url), (first.session, None));
    }
    // Two at once: the second one has the same session, or is asked to wait.
    let twice = order(reference(9));
    let open = || world.stripe.open(&world.key, &twice);
    let (one, other) = tokio::join!(open(), open());
    let opened: Vec<_> = [&one, &other].into_iter().flatten().collect();
    assert!(!opened.is_empty() && opened.iter().all(|it| it.session == opened[0].session));
    let is_busy = |it: &&Result<_, _>| matches!(it, Err(RemoteError::Busy { .. }));
    assert_eq!(opened.len() + [&one, &other].into_iter().filter(is_busy).count(), 2);

    let sessions = world.tell(json!({"do": "sessions"}));
    assert_eq!(sessions["sessions"].as_object().unwrap().len(), 3);

    let other = priced(reference(2), 4000, "EUR");
    let said = refusal(world.stripe.open(&world.key, &other).await);
    assert!(said.contains("same parameters") && said.contains("idempotency_error"), "{said}");
    world.rig.check();
}

#[tokio::test]
async fn what_is_no_answer_is_told_from_a_refusal() {
    if !has_stripe("what_is_no_answer_is_told_from_a_refusal") {
        return;
    }
    let World { rig, stripe, key: own } = own_world();
    let order = order(reference(4));
    for status in [500, 502, 503, 409] {
        rig.fail("/v1/checkout/sessions$", &json!({"status": status}));
        let busy = stripe.open(&own, &order).await.unwrap_err();
        assert!(matches!(busy, RemoteError::Busy { .. }), "{status}: {busy:?}");
    }
    rig.fail("/v1/checkout/sessions$", &json!({"status": 429, "retryAfter": 7}));
    let busy = stripe.open(&own, &order).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { after, .. } if after.as_secs() == 7), "{busy:?}");
    let how = json!({"status": 402, "message": "Your account cannot make live charges.", "code": "account_invalid"});
    rig.fail("/v1/checkout/sessions$", &how);
    let said = refusal(stripe.open(&own, &order).await);
    assert!(
        said.contains("Your account cannot make live charges. (402 account_invalid)"),
        "{said}"
    );
    let gone = Stripe::new("http://127.0.0.1:9").unwrap();
    let busy = gone.open(&own, &order).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");

    let opened = stripe.open(&own, &order).await.unwrap();
    rig.fail("/v1/checkout/sessions/", &json!("cutAfter"));
    let session = opened.session.as_deref();
    let busy = stripe.payment(&own, order.reference, session).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");
    // A page whose closing got lost is closed.
    rig.fail("/expire", &json!("cutAfter"));
    assert!(stripe.close(&own, session.unwrap()).await.is_err());
    assert_eq!(stripe.close(&own, session.unwrap()).await, Ok(true));
    rig.check();
}

#[tokio::test]
async fn a_closed_page_cannot_be_paid_and_a_paid_one_not_closed() {
    if !has_stripe("a_closed_page_cannot_be_paid_and_a_paid_one_not_closed") {
        return;
    }
    let world = world();
    let (closed, paid) = (order(reference(5)), order(reference(6)));
    let opened = world.open(&closed).await;
    let session = opened.session.clone().unwrap();
    assert_eq!(world.stripe.close(&world.key, &session).await, Ok(true));
    world.rig.pay(&closed.reference.to_string());
    assert_eq!(world.rig.charges(&closed.reference.to_string()), 0);
    let payment = world.payment(closed.reference, &opened).await;
    assert_eq!((payment.status, payment.paid_at), (PaymentStatus::Expired, None));
    assert_eq!(world.open(&closed).await.url, None);

    let (opened, _) = world.paid(&paid).await;
    let close = world.stripe.close(&world.key, &opened.session.unwrap()).await;
    assert_eq!(close, Ok(false));
    assert_eq!(world.stripe.close(&world.key, "cs_none").await, Ok(false));
    world.rig.check();
}

#[tokio::test]
async fn refusals_have_the_words_of_stripe() {
    if !has_stripe("refusals_have_the_words_of_stripe") {
        return;
    }
    let world = world();
    let order = order(reference(7));
    let wrong = key("sk_test_of_somebody_else");
    let said = refusal(world.stripe.open(&wrong, &order).await);
    assert!(said.contains("Replace the credential") && said.contains("Invalid API Key"), "{said}");
    assert!(!said.contains("somebody_else"), "{said}");
    refusal(world.stripe.check_access(&wrong).await);
    let session = world.open(&order).await.session.unwrap();
    refusal(world.stripe.close(&wrong, &session).await);
    let access = world.stripe.check_access(&world.key).await.unwrap();
    assert!(access.contains("for tests") && !access.contains("signing secret"), "{access}");

    let late = payments::PaymentOrder {
        expires_at: order.expires_at + Duration::from_secs(100_000),
        ..super::world::order(reference(8))
    };
    let said = refusal(world.stripe.open(&world.key, &late).await);
    assert!(said.contains("30 minutes and 24 hours"), "{said}");
    let other = PaystackKey { secret_key: SecretText(SECRET_KEY.into()), previous_keys: vec![] };
    let said = refusal(world.stripe.open(&ProviderKey::Paystack(other), &order).await);
    assert!(said.contains("one for Paystack"), "{said}");
    world.rig.check();
}

#[tokio::test]
async fn amounts_are_counted_as_stripe_counts_them() {
    if !has_stripe("amounts_are_counted_as_stripe_counts_them") {
        return;
    }
    let world = world();
    let cases = [
        (10, 1500, "JPY", 1500),
        (11, 5120, "KWD", 5120),
        (12, 700, "UGX", 70_000),
        (13, 500, "MGA", 5),
    ];
    for (number, minor, currency, counted) in cases {
        let order = priced(reference(number), minor, currency);
        let (opened, paid) = world.paid(&order).await;
        assert_eq!(paid.amount, Some(money(minor, currency)));
        let sessions = world.tell(json!({"do": "sessions"}));
        let seen = &sessions["sessions"][opened.session.unwrap()];
        assert_eq!(seen["amount_total"], counted, "{currency}");
    }
    // Nothing is sent of what Stripe cannot count, or of what contradicts itself.
    let said = refusal(world.stripe.open(&world.key, &priced(reference(14), 5124, "KWD")).await);
    assert!(said.contains("a multiple of 10 "), "{said}");
    let said = refusal(world.stripe.open(&world.key, &priced(reference(14), 1000, "IQD")).await);
    assert!(said.contains("takes no IQD"), "{said}");
    let wrong = payments::PaymentOrder { total: money(4999, "EUR"), ..order(reference(14)) };
    let said = refusal(world.stripe.open(&world.key, &wrong).await);
    assert!(said.contains("do not add up"), "{said}");
    let asked =
        |request: &serde_json::Value| request["idempotencyKey"] == reference(14).to_string();
    assert!(!world.rig.requests("/v1/checkout/sessions").iter().any(asked));
    world.rig.check();
}

#[tokio::test]
async fn in_every_order_of_failures_a_reference_has_one_session() {
    if !has_stripe("in_every_order_of_failures_a_reference_has_one_session") {
        return;
    }
    const STEPS: u32 = 5;
    let world = own_world();
    for number in 0..STEPS.pow(2) {
        let order = order(reference(1000 + number));
        let text = order.reference.to_string();
        let mut session = None;
        for step in [number % STEPS, number / STEPS, 0] {
            match step {
                0 => {}
                1 => world.rig.fail("/v1/checkout/sessions$", &json!("cutBefore")),
                2 => world.rig.fail("/v1/checkout/sessions$", &json!("cutAfter")),
                3 => world.rig.fail("/v1/checkout/sessions$", &json!({"status": 502})),
                // Whoever has the page pays on it.
                _ if session.is_some() => world.rig.pay(&text),
                _ => {}
            }
            let opened = world.stripe.open(&world.key, &order).await;
            world.tell(json!({"do": "heal"}));
            if let Ok(opened) = opened {
                assert!(session.is_none() || session == opened.session, "{number}");
                session = opened.session;
            }
        }
        let charges = world.rig.charges(&text);
        let payment = world.stripe.payment(&world.key, order.reference, session.as_deref()).await;
        let is_paid = payment.unwrap().unwrap().status == PaymentStatus::Paid;
        assert!(charges <= 1 && is_paid == (charges == 1), "{number}");
    }
    let sessions = world.tell(json!({"do": "sessions"}));
    assert_eq!(sessions["sessions"].as_object().unwrap().len(), 25);
    world.rig.check();
}
