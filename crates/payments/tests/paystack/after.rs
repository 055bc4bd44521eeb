//! What happens after a payment: refunds, disputes, notices.

use super::world::{key, order, reference, world};
use contract::Timestamp;
use payments::{
    About, DisputeState, Notice, NoticeRefused, PaymentStatus, PaystackKey, Provider, ProviderKey,
    SecretText, Signature, paystack::Paystack, read_notice,
};
use serde_json::{Value, json};
use test_support::payments::{PaymentProvider, SECRET_KEY, has_paystack};

#[tokio::test]
async fn refunds_and_disputes_are_looked_up() {
    if !has_paystack("refunds_and_disputes_are_looked_up") {
        return;
    }
    let world = world();
    let (order, other) = (order(reference(21)), order(reference(22)));
    for order in [&order, &other] {
        world.paystack.open(&world.key, order).await.unwrap();
        world.rig.pay(&order.reference.to_string());
    }
    let refund = |amount, status: &str| json!({"do": "refund", "reference": order.reference, "amount": amount, "status": status});
    for (amount, status, sum) in
        [(1500, "pending", 0), (1500, "processed", 1500), (700, "failed", 1500)]
    {
        world.tell(refund(amount, status));
        assert_eq!(world.payment(order.reference).await.refunded, sum);
    }
    world.tell(refund(3500, "processed"));
    let refunded = world.payment(order.reference).await;
    assert_eq!((refunded.status, refunded.refunded), (PaymentStatus::Paid, 5000));

    let statuses =
        [("open", DisputeState::Open), ("won", DisputeState::Won), ("lost", DisputeState::Lost)];
    for (status, expected) in statuses {
        world.rig.dispute(&other.reference.to_string(), status);
        assert_eq!(world.payment(other.reference).await.dispute, Some(expected));
    }
    let kept = world.payment(other.reference).await;
    assert_eq!(kept.refunded, 0);
    let found = world.paystack.reference_of(&world.key, &kept.id.unwrap()).await;
    assert_eq!(found, Ok(Some(other.reference)));
    assert_eq!(world.paystack.reference_of(&world.key, "999999").await, Ok(None));
    assert_eq!(world.paystack.reference_of(&world.key, "../balance").await, Ok(None));
    world.rig.check();
}

#[tokio::test]
async fn every_status_is_understood() {
    if !has_paystack("every_status_is_understood") {
        return;
    }
    let world = world();
    let order = order(reference(23));
    world.paystack.open(&world.key, &order).await.unwrap();
    let statuses = [
        ("ongoing", PaymentStatus::Pending),
        ("pending", PaymentStatus::Pending),
        ("processing", PaymentStatus::Pending),
        ("queued", PaymentStatus::Pending),
        ("abandoned", PaymentStatus::Abandoned),
        ("failed", PaymentStatus::Failed("No money".into())),
        ("reversed", PaymentStatus::Failed("No money".into())),
        ("of a later year", PaymentStatus::Pending),
    ];
    // The metadata of Paystack are of many kinds.
    let metadata = [json!(""), json!(0), json!({"app": "app_1"}), json!("{\"app\":1}")];
    for ((status, expected), metadata) in statuses.into_iter().zip(metadata.iter().cycle()) {
        world.tell(json!({
            "do": "change", "reference": order.reference, "status": status, "metadata": metadata,
            "gateway_response": "No money",
        }));
        assert_eq!(world.payment(order.reference).await.status, expected, "{status}");
    }
    world.rig.check();
}

#[tokio::test]
async fn notices_lead_to_what_they_are_about() {
    if !has_paystack("notices_lead_to_what_they_are_about") {
        return;
    }
    let rig = PaymentProvider::paystack();
    let paystack = Paystack::new(&rig.address).unwrap();
    let (order, own) = (order(reference(24)), key(SECRET_KEY));
    paystack.open(&own, &order).await.unwrap();
    rig.pay(&order.reference.to_string());
    rig.tell(&json!({"do": "refund", "reference": order.reference}));
    rig.tell(&json!({"do": "rotate", "secretKey": "sk_test_another"}));
    rig.tell(&json!({"do": "dispute", "reference": order.reference}));
    let now = Timestamp::from_millis(0);
    let read = |key: &ProviderKey, delivery: &Value| {
        let signature = delivery["headers"]["x-paystack-signature"].as_str().unwrap();
        let body = delivery["body"].as_str().unwrap().as_bytes();
        read_notice(key, &Signature(signature.into()), body, now)
    };
    let rotated = ProviderKey::Paystack(PaystackKey {
        secret_key: SecretText("sk_test_another".into()),
        previous_keys: vec![SecretText(SECRET_KEY.into())],
    });
    let events = ["charge.success", "refund.processed", "charge.dispute.create"];
    let deliveries = rig.deliveries();
    assert_eq!(deliveries.len(), events.len());
    for (delivery, event) in deliveries.iter().zip(events) {
        let about = About::Payment(order.reference);
        assert_eq!(read(&rotated, delivery), Ok(Notice { event: event.into(), about }));
    }
    assert!(read(&own, &deliveries[0]).is_ok());
    let refused = read(&own, &deliveries[2]);
    assert!(matches!(refused, Err(NoticeRefused::Signature(_))), "{refused:?}");
    rig.check();
}
