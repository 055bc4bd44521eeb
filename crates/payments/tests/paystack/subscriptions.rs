//! Plans and subscriptions.

use super::world::{key, order, reference, refusal, world};
use contract::{Timestamp, text::PlanCode};
use payments::{PaymentStatus, Provider, Subscription, SubscriptionStatus, paystack::Paystack};
use serde_json::json;
use test_support::payments::{PaymentProvider, SECRET_KEY, has_paystack};

#[tokio::test]
async fn plans_are_looked_up() {
    if !has_paystack("plans_are_looked_up") {
        return;
    }
    let world = world();
    let plan = json!({"do": "plan", "code": "PLN_gold", "name": "Gold", "amount": 250_000});
    world.tell(plan);
    world.tell(json!({"do": "plan", "code": "PLN_old", "archived": true}));
    world.tell(json!({"do": "plan", "code": "PLN_francs", "amount": 150_000, "currency": "XOF"}));
    let plan = |code: &str| {
        let code: PlanCode = code.parse().unwrap();
        let world = &world;
        async move { world.paystack.plan(&world.key, &code).await }
    };
    let gold = plan("PLN_gold").await.unwrap();
    assert_eq!((gold.name.as_str(), gold.price.to_string()), ("Gold", "2500.00 NGN".into()));
    assert_eq!(plan("PLN_francs").await.unwrap().price.to_string(), "1500 XOF");
    assert!(refusal(plan("PLN_none").await).contains("does not know the plan PLN_none"));
    assert!(refusal(plan("PLN_old").await).contains("archived"));
    let unknown =
        payments::PaymentOrder { plan: Some("PLN_none".parse().unwrap()), ..order(reference(40)) };
    let said = refusal(world.paystack.open(&world.key, &unknown).await);
    assert!(said.contains("Plan not found"), "{said}");
    world.rig.check();
}

#[tokio::test]
async fn a_payment_begins_a_subscription_which_renews_fails_and_ends() {
    if !has_paystack("a_payment_begins_a_subscription_which_renews_fails_and_ends") {
        return;
    }
    let rig = PaymentProvider::paystack();
    let paystack = Paystack::new(&rig.address).unwrap();
    let own = key(SECRET_KEY);
    rig.tell(&json!({"do": "plan", "code": "PLN_gold", "amount": 5000}));
    rig.tell(&json!({"do": "plan", "code": "PLN_other", "amount": 5000}));
    let gold: PlanCode = "PLN_gold".parse().unwrap();
    let mut codes = Vec::new();
    // The buyer has another subscription to another plan, and an earlier one to the same plan.
    for (number, plan) in [(41, "PLN_other"), (42, "PLN_gold"), (43, "PLN_gold")] {
        let order = payments::PaymentOrder {
            plan: Some(plan.parse().unwrap()),
            ..order(reference(number))
        };
        paystack.open(&own, &order).await.unwrap();
        rig.pay(&order.reference.to_string());
        let paid = paystack.payment(&own, order.reference, None).await.unwrap().unwrap();
        assert_eq!(paid.status, PaymentStatus::Paid);
        assert_eq!(paid.plan, order.plan);
        // Paystack makes the subscription some time after the payment.
        if number < 43 {
            assert_eq!(paystack.subscription_of(&own, &paid).await, Ok(None));
        }
        let begun = paystack.subscription_of(&own, &paid).await.unwrap().unwrap();
        codes.push(begun.id.clone());
        if number == 42 {
            assert_eq!((begun.status, &begun.plan), (SubscriptionStatus::Active, &gold));
            assert_eq!((begun.said.as_str(), begun.renewal_failure), ("active", None));
            assert_eq!(begun.email.as_str(), "ada@example.com");
            assert!(begun.period_end.unwrap() > paid.paid_at.unwrap());
        }
    }
    let code = codes[1].clone();
    let look = || async { paystack.subscription(&own, &code).await.unwrap().unwrap() };
    let end = |subscription: &Subscription| subscription.period_end.map(Timestamp::as_millis);

    let first = look().await;
    rig.renew(&code, true);
    let renewed = look().await;
    assert!(renewed.status == SubscriptionStatus::Active && end(&renewed) > end(&first));

    rig.renew(&code, false);
    let failed = look().await;
    assert_eq!((failed.status, failed.said.as_str()), (SubscriptionStatus::PastDue, "attention"));
    assert_eq!(failed.renewal_failure.as_deref(), Some("Insufficient Funds"));
    assert_eq!(end(&failed), end(&renewed), "an unpaid period is not paid until its end");

    rig.renew(&code, true);
    let renewed = look().await;
    assert_eq!(
        (renewed.status, renewed.renewal_failure.as_ref()),
        (SubscriptionStatus::Active, None)
    );

    rig.cancel(&code, false);
    let ending = look().await;
    assert_eq!((ending.status, end(&ending)), (SubscriptionStatus::Ending, end(&renewed)));
    rig.cancel(&code, true);
    assert_eq!(look().await.status, SubscriptionStatus::Ended);
    assert_eq!(paystack.subscription(&own, "SUB_none").await, Ok(None));
    assert_eq!(paystack.subscription(&own, "../balance").await, Ok(None));
    rig.check();
}
