//! What happens after a payment: refunds, disputes, notices.

use super::world::{World, money, now, order, own_world, priced, reference, world};
use contract::Timestamp;
use payments::{
    About, DisputeState, Notice, NoticeRefused, PaymentStatus, Provider, ProviderKey, SecretText,
    Signature, StripeKey, read_notice,
};
use serde_json::{Value, json};
use std::time::Duration;
use test_support::payments::{WEBHOOK_SECRET, has_stripe};

#[tokio::test]
async fn refunds_and_disputes_are_looked_up() {
    if !has_stripe("refunds_and_disputes_are_looked_up") {
        return;
    }
    let world = world();
    let order = order(reference(21));
    let (opened, _) = world.paid(&order).await;
    for (amount, sum) in [(1500, 1500), (3500, 5000)] {
        world.tell(json!({"do": "refund", "reference": order.reference, "amount": amount}));
        let payment = world.payment(order.reference, &opened).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Paid, sum));
    }
    // Stripe counts shillings in hundredths.
    let shillings = priced(reference(22), 700, "UGX");
    let (opened, _) = world.paid(&shillings).await;
    world.tell(json!({"do": "refund", "reference": shillings.reference, "amount": 20_000}));
    let payment = world.payment(shillings.reference, &opened).await;
    assert_eq!((payment.refunded, payment.amount), (200, Some(money(700, "UGX"))));

    let states = [
        ("warning_needs_response", DisputeState::Open),
        ("needs_response", DisputeState::Open),
        ("under_review", DisputeState::Open),
        ("won", DisputeState::Won),
        ("warning_closed", DisputeState::Won),
        ("lost", DisputeState::Lost),
    ];
    for (status, expected) in states {
        world.tell(json!({"do": "dispute", "reference": shillings.reference, "status": status}));
        let payment = world.payment(shillings.reference, &opened).await;
        assert_eq!(payment.dispute, Some(expected), "{status}");
    }
    world.rig.check();
}

fn read(key: &ProviderKey, delivery: &Value, now: Timestamp) -> Result<Notice, NoticeRefused> {
    let signature = delivery["headers"]["stripe-signature"].as_str().unwrap();
    let body = delivery["body"].as_str().unwrap().as_bytes();
    read_notice(key, &Signature(signature.into()), body, now)
}

/// The first notice of an event. The two programs send theirs some time after what happened.
async fn delivered(world: &World, event: &str) -> Value {
    for _ in 0..200 {
        if let Some(found) = world.rig.deliveries().iter().find(|it| it["event"] == event) {
            return found.clone();
        }
        #[allow(clippy::disallowed_methods, reason = "the programs of the tests have this clock")]
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no {event} came");
}

#[tokio::test]
async fn notices_of_three_signers_are_read() {
    if !has_stripe("notices_of_three_signers_are_read") {
        return;
    }
    let world = own_world();
    let (once, monthly) = (order(reference(23)), priced(reference(24), 900, "EUR"));
    let monthly = payments::PaymentOrder { plan: Some("price_gold".parse().unwrap()), ..monthly };
    world.tell(json!({"do": "price", "id": "price_gold"}));
    let (_, paid) = world.paid(&once).await;
    let (_, begun) = world.paid(&monthly).await;
    world.tell(json!({"do": "refund", "reference": once.reference}));
    world.tell(json!({"do": "dispute", "reference": monthly.reference}));

    let subscription = || About::Subscription(begun.subscription.clone().unwrap());
    let cases = [
        // Signed by emulate.
        ("checkout.session.completed", About::Payment(once.reference)),
        // Signed by localstripe.
        ("payment_intent.succeeded", About::Payment(once.reference)),
        ("customer.subscription.created", subscription()),
        ("invoice.payment_succeeded", subscription()),
        // Signed by the tests.
        ("charge.refunded", About::PaymentId(paid.id.clone().unwrap())),
        ("charge.dispute.created", About::PaymentId(begun.id.clone().unwrap())),
    ];
    for (event, about) in cases {
        let delivery = delivered(&world, event).await;
        let notice = read(&world.key, &delivery, now());
        assert_eq!(notice, Ok(Notice { event: event.into(), about }), "{event}");
        let late = read(&world.key, &delivery, now() + Duration::from_secs(400));
        assert!(matches!(late, Err(NoticeRefused::Signature(_))), "{event}: {late:?}");
    }
    // What a payment is the payment of is found, also for a subscription.
    for (payment, reference) in [(&paid, once.reference), (&begun, monthly.reference)] {
        let id = payment.id.as_deref().unwrap();
        let found = world.stripe.reference_of(&world.key, id).await;
        assert_eq!(found, Ok(Some(reference)));
    }

    world.tell(json!({"do": "roll", "webhookSecret": "whsec_another"}));
    world.tell(json!({"do": "dispute", "reference": once.reference, "status": "lost"}));
    let closed = delivered(&world, "charge.dispute.closed").await;
    let refused = read(&world.key, &closed, now());
    assert!(matches!(refused, Err(NoticeRefused::Signature(_))), "{refused:?}");
    let rolled = ProviderKey::Stripe(StripeKey {
        secret_key: SecretText("sk_test_1".into()),
        webhook_secrets: vec![
            SecretText(WEBHOOK_SECRET.into()),
            SecretText("whsec_another".into()),
        ],
    });
    assert!(read(&rolled, &closed, now()).is_ok());
    world.rig.check();
}
