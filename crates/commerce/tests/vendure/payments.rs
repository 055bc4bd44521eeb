//! Payments of orders, and their cancellation.

use super::place::{Place, reference, refused};
use commerce::{Built, PurchaseOrder, Shop};
use contract::money::{Amount, Money};
use futures_util::future::join_all;
use serde_json::json;
use test_support::vendure;

async fn locked(place: &Place) -> (PurchaseOrder, Built) {
    let sku = reference().to_string();
    let order = place.order(vec![place.product(&sku, 1999, None, 1)]);
    let built = place.build(&order).await.unwrap();
    (order, built)
}

#[tokio::test]
async fn a_payment_is_recorded_once() {
    if !vendure::is_here("a_payment_is_recorded_once") {
        return;
    }
    let place = Place::new("settled", "eu");
    let (order, built) = locked(&place).await;
    for _ in 0..16 {
        place.settle(&order, &built).await.unwrap();
    }
    let total = built.total.amount.minor();
    let recorded = json!([["svc", "Settled", total, order.reference]]);
    assert_eq!(place.payments(&built.id), recorded);
    assert_eq!(place.seen(&built.id)["state"], "PaymentSettled");
    let pays = place.server.requests("settled").iter().filter(|it| *it == "Pay").count();
    assert_eq!(pays, 1);

    let (order, built) = locked(&place).await;
    for settled in join_all((0..16).map(|_| place.settle(&order, &built))).await {
        settled.unwrap();
    }
    let recorded = json!([["svc", "Settled", total, order.reference]]);
    assert_eq!(place.payments(&built.id), recorded);
    let why = refused(place.cancel(&built.id, order.reference).await);
    assert!(why.contains("PaymentSettled in the shop, with a payment"), "{why}");
}

#[tokio::test]
async fn a_payment_that_does_not_fit_is_refused() {
    if !vendure::is_here("a_payment_that_does_not_fit_is_refused") {
        return;
    }
    let place = Place::new("unfit", "eu");
    let (order, built) = locked(&place).await;
    let money = |amount, currency: &str| Money {
        amount: Amount::new(amount).unwrap(),
        currency: currency.parse().unwrap(),
    };
    let settle = async |paid: &Money| {
        refused(place.shop.settle(&place.channel, &built.id, order.reference, paid).await)
    };
    let total = built.total.amount.minor();
    for paid in [money(total - 1, "EUR"), money(total + 1, "EUR"), money(total, "NGN")] {
        let why = settle(&paid).await;
        assert!(why.contains("costs 1023.79 EUR") && why.contains(&paid.to_string()), "{why}");
    }
    assert_eq!(place.payments(&built.id), json!([]));
    place.settle(&order, &built).await.unwrap();
    // What is recorded is compared too.
    let why = settle(&money(total + 1, "EUR")).await;
    assert!(why.contains("must correct it"), "{why}");

    let (order, built) = locked(&place).await;
    place.cancel(&built.id, order.reference).await.unwrap();
    place.cancel(&built.id, order.reference).await.unwrap();
    let why = refused(place.settle(&order, &built).await);
    assert!(why.contains("Cancelled"), "{why}");
    let why = refused(place.build_again(&order, &built).await);
    assert!(why.contains("Cancelled"), "{why}");
    let gone = Built { id: "99999".into(), ..built };
    let why = refused(place.settle(&order, &gone).await);
    assert!(why.contains("not in the shop any more"), "{why}");
    assert_eq!(place.cancel("99999", order.reference).await, Ok(()));

    // A shopkeeper has taken the money in another way.
    let (order, built) = locked(&place).await;
    let pay = "mutation($id: ID!) {
        addManualPaymentToOrder(input: {orderId: $id, method: \"cash\", metadata: {}}) { __typename }
    }";
    place.server.admin("eu", pay, &json!({"id": built.id}));
    let why = refused(place.settle(&order, &built).await);
    assert!(why.contains("PaymentSettled"), "{why}");
}

/// A customer who signs in to the shop may take the order up again.
#[tokio::test]
async fn an_order_that_became_a_cart_again_can_be_settled() {
    if !vendure::is_here("an_order_that_became_a_cart_again_can_be_settled") {
        return;
    }
    let place = Place::new("cart", "eu");
    let take_up = |built: &Built| {
        let transition = "mutation($id: ID!) {
            transitionOrderToState(id: $id, state: \"AddingItems\") { __typename }
        }";
        place.server.admin("eu", transition, &json!({"id": built.id}));
    };
    let (order, built) = locked(&place).await;
    take_up(&built);
    place.settle(&order, &built).await.unwrap();
    assert_eq!(place.seen(&built.id)["state"], "PaymentSettled");
    let (order, built) = locked(&place).await;
    take_up(&built);
    place.cancel(&built.id, order.reference).await.unwrap();
    assert_eq!(place.seen(&built.id)["state"], "Cancelled");
}
