//! Plans and subscriptions.

use super::world::{priced, reference, refusal, world};
use contract::{Timestamp, text::PlanCode};
use payments::{PaymentOrder, PaymentStatus, Provider, Subscription, SubscriptionStatus};
use serde_json::json;
use test_support::payments::has_stripe;

#[tokio::test]
async fn plans_are_recurring_prices() {
    if !has_stripe("plans_are_recurring_prices") {
        return;
    }
    let world = world();
    world.tell(
        json!({"do": "price", "id": "price_yen", "name": "Kin", "amount": 1500, "currency": "jpy"}),
    );
    world.tell(json!({"do": "price", "id": "price_once", "once": true}));
    world.tell(json!({"do": "price", "id": "price_old", "archived": true}));
    let plan = |code: &str| {
        let code: PlanCode = code.parse().unwrap();
        let world = &world;
        async move { world.stripe.plan(&world.key, &code).await }
    };
    let yen = plan("price_yen").await.unwrap();
    assert_eq!((yen.name.as_str(), yen.price.to_string()), ("Kin", "1500 JPY".into()));
    assert_eq!(yen.code.as_str(), "price_yen");
    assert!(refusal(plan("price_none").await).contains("does not know the price price_none"));
    assert!(refusal(plan("price_once").await).contains("recurring"));
    assert!(refusal(plan("price_old").await).contains("archived"));
    world.rig.check();
}

#[tokio::test]
async fn a_payment_begins_a_subscription_which_renews_fails_and_ends() {
    if !has_stripe("a_payment_begins_a_subscription_which_renews_fails_and_ends") {
        return;
    }
    let world = world();
    world.tell(json!({"do": "price", "id": "price_gold", "amount": 900, "currency": "eur"}));
    let gold: PlanCode = "price_gold".parse().unwrap();
    let order = PaymentOrder { plan: Some(gold.clone()), ..priced(reference(41), 900, "EUR") };
    let opened = world.open(&order).await;
    world.tell(json!({"do": "decline", "reference": order.reference}));
    let open = world.payment(order.reference, &opened).await;
    assert_eq!((open.status.clone(), &open.subscription), (PaymentStatus::Pending, &None));
    assert_eq!(world.stripe.subscription_of(&world.key, &open).await, Ok(None));

    let (_, paid) = world.paid(&order).await;
    assert_eq!((&paid.status, &paid.plan), (&PaymentStatus::Paid, &Some(gold.clone())));
    assert_eq!(paid.amount, Some(order.total));
    assert!(paid.paid_at.is_some() && paid.id.as_ref().unwrap().starts_with("pi_"));
    let begun = world.stripe.subscription_of(&world.key, &paid).await.unwrap().unwrap();
    assert_eq!((begun.status, &begun.plan), (SubscriptionStatus::Active, &gold));
    assert_eq!((begun.said.as_str(), &begun.renewal_failure), ("active", &None));
    assert_eq!(begun.email.as_str(), "ada@example.com");
    assert_eq!(world.rig.charges(&order.reference.to_string()), 1);

    let look =
        || async { world.stripe.subscription(&world.key, &begun.id).await.unwrap().unwrap() };
    let end = |subscription: &Subscription| subscription.period_end.map(Timestamp::as_millis);
    world.rig.renew(&begun.id, true);
    let renewed = look().await;
    assert!(renewed.status == SubscriptionStatus::Active && end(&renewed) > end(&begun));

    world.rig.renew(&begun.id, false);
    let failed = look().await;
    assert_eq!((failed.status, failed.said.as_str()), (SubscriptionStatus::PastDue, "past_due"));
    let words = failed.renewal_failure.as_deref();
    assert_eq!(words, Some("Your card was declined. (card_declined)"));
    assert_eq!(end(&failed), end(&renewed), "an unpaid period is not paid until its end");

    world.tell(json!({"do": "settle", "id": begun.id}));
    let settled = look().await;
    assert_eq!((settled.status, &settled.renewal_failure), (SubscriptionStatus::Active, &None));
    assert!(end(&settled) > end(&failed));

    world.rig.cancel(&begun.id, true);
    let ended = look().await;
    assert_eq!((ended.status, ended.said.as_str()), (SubscriptionStatus::Ended, "canceled"));
    assert_eq!(world.stripe.subscription(&world.key, "sub_none").await, Ok(None));

    // The first payment is back in the record of the payment.
    world.tell(json!({"do": "refund", "reference": order.reference, "amount": 400}));
    assert_eq!(world.payment(order.reference, &opened).await.refunded, 400);
    world.rig.check();
}

#[tokio::test]
async fn a_cancelled_subscription_ends_with_its_period() {
    if !has_stripe("a_cancelled_subscription_ends_with_its_period") {
        return;
    }
    let world = world();
    world.tell(json!({"do": "price", "id": "price_silver"}));
    let silver = Some("price_silver".parse().unwrap());
    let order = PaymentOrder { plan: silver, ..priced(reference(42), 900, "EUR") };
    let (_, paid) = world.paid(&order).await;
    let begun = world.stripe.subscription_of(&world.key, &paid).await.unwrap().unwrap();
    world.rig.cancel(&begun.id, false);
    let ending = world.stripe.subscription(&world.key, &begun.id).await.unwrap().unwrap();
    assert_eq!((ending.status, ending.period_end), (SubscriptionStatus::Ending, begun.period_end));
    assert_eq!(ending.renewal_failure, None);
    world.rig.check();
}
