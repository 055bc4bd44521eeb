//! Whole orders, and what the shop has of them.

use super::place::{Place, refused};
use commerce::{Line, OrderProgress, Shop, Variant};
use serde_json::json;
use test_support::vendure;

#[tokio::test]
async fn an_order_is_built_as_ordered_and_costs_what_the_shop_says() {
    if !vendure::is_here("an_order_is_built_as_ordered_and_costs_what_the_shop_says") {
        return;
    }
    let place = Place::new("whole", "eu");
    let lamp = place.product("lamp", 1999, Some(10), 3);
    let chair = place.server.product("eu", "whole-chair", 4950, None);
    let promotion = json!({"do": "promotion", "channel": "eu", "variant": chair, "percent": 10});
    place.server.tell(&promotion);
    // The same variant twice is one line.
    let by_id = Line { variant: Variant::Id(chair.clone()), quantity: 1 };
    let by_sku = Line { variant: Variant::Sku("whole-chair".into()), quantity: 1 };
    let order = place.order(vec![lamp, by_id, by_sku]);
    let built = place.build(&order).await.unwrap();

    let told: Vec<_> =
        built.summary.iter().map(|it| (it.name.as_str(), it.quantity, it.total)).collect();
    // 19% taxes: 3 * 23.7881 and 2 * 58.905, less a tenth.
    let lines = [
        ("The whole-lamp", 3, 7136),
        ("The whole-chair", 2, 11781),
        ("Delivery", 1, 100_000),
        ("10% off", 1, -1892),
    ];
    assert_eq!(told, lines);
    assert_eq!(built.total.to_string(), "1170.25 EUR");

    let seen = place.seen(&built.id);
    assert_eq!(seen["state"], "ArrangingPayment");
    assert_eq!(seen["code"], built.code);
    assert_eq!(seen["totalWithTax"], 117_025);
    let email = order.customer.email.as_str().to_lowercase();
    let customer = json!({
        "emailAddress": email, "firstName": "Ada King", "lastName": "Lovelace",
        "phoneNumber": "+49 1",
    });
    assert_eq!(seen["customer"], customer);
    let address = json!({
        "fullName": "Ada King Lovelace", "streetLine1": "1 Long Street", "city": "Old Town",
        "countryCode": "DE", "phoneNumber": "+49 1",
    });
    assert_eq!((&seen["shippingAddress"], &seen["billingAddress"]), (&address, &address));
    let note =
        json!([{"isPublic": false, "data": {"note": format!("Checkout {}", order.reference)}}]);
    assert_eq!(seen["history"]["items"], note);
    assert_eq!(seen["shippingLines"][0]["shippingMethod"]["code"], "standard-eu");

    // One change a step, each after a look.
    let requests = place.server.requests("whole");
    let changes = [
        "Create",
        "Mark",
        "Add",
        "Add",
        "SetCustomer",
        "SetShippingAddress",
        "SetBillingAddress",
        "SetShippingMethod",
        "Transition",
    ];
    let done: Vec<_> = requests.iter().filter(|it| changes.contains(&it.as_str())).collect();
    assert_eq!(done, changes);
    assert_eq!(requests.iter().filter(|it| *it == "Look").count(), changes.len() + 1);
}

#[tokio::test]
async fn amounts_are_those_of_the_currency() {
    if !vendure::is_here("amounts_are_those_of_the_currency") {
        return;
    }
    // With taxes: 1093.40, 1093.40 and 1091.20 yen.
    let place = Place::new("amounts-jp", "jp");
    let lines = [("tea", 99_400), ("cup", 99_400), ("pot", 99_200)];
    let lines = lines.map(|(sku, price)| place.product(sku, price, None, 1));
    let built = place.build(&place.order(lines.into())).await.unwrap();
    assert_eq!(built.total.to_string(), "4278 JPY");
    let told: Vec<_> = built.summary.iter().map(|it| (it.name.as_str(), it.total)).collect();
    let products =
        [("The amounts-jp-tea", 1093), ("The amounts-jp-cup", 1093), ("The amounts-jp-pot", 1091)];
    assert_eq!(told, [&products[..], &[("Delivery", 1000), ("Rounding", 1)]].concat());

    // Neither a name nor an address: the shop decides whether it takes the order.
    let place = Place::new("amounts-ng", "ng");
    let mut order = place.order(vec![place.product("tea", 100_000, None, 2)]);
    order.customer.name = None;
    order.shipping_address = None;
    let built = place.build(&order).await.unwrap();
    assert_eq!(built.total.to_string(), "3150.00 NGN");

    // Parts of a yen are left.
    let place = Place::new("amounts-sen", "jp");
    let order = place.order(vec![place.product("sweet", 1001, None, 1)]);
    let why = refused(place.build(&order).await);
    assert!(why.contains("smallest unit of JPY"), "{why}");
}

#[tokio::test]
async fn the_buyer_chooses_the_shipping_method() {
    if !vendure::is_here("the_buyer_chooses_the_shipping_method") {
        return;
    }
    let place = Place::new("shipping", "eu");
    let mut order = place.order(vec![place.product("desk", 1000, None, 1)]);
    order.shipping_method = Some("express-eu".into());
    let built = place.build(&order).await.unwrap();
    assert_eq!(built.total.to_string(), "2511.90 EUR");
    order.reference = super::place::reference();
    order.shipping_method = Some("pigeon".into());
    let why = refused(place.build(&order).await);
    assert!(why.contains("pigeon") && why.contains("standard-eu, express-eu"), "{why}");
}

/// Somebody in the shop has changed the draft, or has deleted it.
#[tokio::test]
async fn a_draft_that_others_changed_becomes_the_order_again() {
    if !vendure::is_here("a_draft_that_others_changed_becomes_the_order_again") {
        return;
    }
    let place = Place::new("changed", "eu");
    let mut order = place.order(vec![place.product("pen", 1000, None, 2)]);
    let other = place.server.product("eu", "changed-other", 500, None);
    let mut progress = OrderProgress::default();
    for _ in 0..3 {
        let (next, _) = place.shop.build(&place.channel, &order, &progress).await.unwrap();
        progress = next;
    }
    let id = progress.order.clone().unwrap();
    let line = place.seen(&id)["lines"][0]["id"].clone();
    let change = "mutation($o: ID!, $l: ID!, $v: ID!) {
        adjustDraftOrderLine(orderId: $o, input: {orderLineId: $l, quantity: 5}) { __typename }
        addItemToDraftOrder(orderId: $o, input: {productVariantId: $v, quantity: 1}) { __typename }
    }";
    place.server.admin("eu", change, &json!({"o": id, "l": line, "v": other}));
    let built = place.go_on(&order, &mut progress).await.unwrap();
    let lines = &place.seen(&built.id)["lines"];
    assert_eq!((lines.as_array().unwrap().len(), &lines[0]["quantity"]), (1, &json!(2)));

    order.reference = super::place::reference();
    let mut progress = OrderProgress::default();
    for _ in 0..3 {
        let (next, _) = place.shop.build(&place.channel, &order, &progress).await.unwrap();
        progress = next;
    }
    let deleted = progress.order.clone().unwrap();
    place.cancel(&deleted, order.reference).await.unwrap();
    let built = place.go_on(&order, &mut progress).await.unwrap();
    assert_ne!(built.id, deleted);
}

#[tokio::test]
async fn a_registered_customer_stays_as_registered() {
    if !vendure::is_here("a_registered_customer_stays_as_registered") {
        return;
    }
    let place = Place::new("registered", "eu");
    let mut order = place.order(vec![place.product("mug", 1000, None, 1)]);
    let register = |at: &str, email: &str| {
        let create = "mutation($i: CreateCustomerInput!) {
            createCustomer(input: $i, password: \"a password of tests\") { __typename }
        }";
        let who = json!({"firstName": "Grace", "lastName": "Hopper", "emailAddress": email});
        place.server.admin(at, create, &json!({"i": who}));
    };
    register("eu", order.customer.email.as_str());
    let built = place.build(&order).await.unwrap();
    assert_eq!(place.seen(&built.id)["customer"]["firstName"], "Grace");

    order.reference = super::place::reference();
    order.customer.email = format!("{}@example.com", order.reference).parse().unwrap();
    register("jp", order.customer.email.as_str());
    let why = refused(place.build(&order).await);
    assert!(why.contains("assign the customer to this channel"), "{why}");
}
