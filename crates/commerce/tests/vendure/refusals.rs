//! Orders that the shop does not take. Nothing of them stays in the shop.

use super::place::{Place, reference, refused};
use commerce::{Line, OrderProgress, PurchaseOrder, Shop, Variant};
use serde_json::{Value, json};
use test_support::vendure;

/// Builds an order that is refused, and returns why. Its draft is gone.
async fn why(place: &Place, order: &PurchaseOrder) -> String {
    let mut progress = OrderProgress::default();
    let why = refused(place.go_on(order, &mut progress).await);
    if let Some(id) = progress.order {
        assert_eq!(place.seen(&id), Value::Null, "{why}");
    }
    why
}

#[tokio::test]
async fn what_cannot_be_ordered_is_refused_and_leaves_nothing() {
    if !vendure::is_here("what_cannot_be_ordered_is_refused_and_leaves_nothing") {
        return;
    }
    let place = Place::new("refused", "eu");
    let lamp = place.product("lamp", 1999, None, 1);
    let with = |line: Line| place.order(vec![lamp.clone(), line]);
    let unknown = |variant| with(Line { variant, quantity: 1 });
    let sku = unknown(Variant::Sku("refused-nothing".into()));
    assert_eq!(
        why(&place, &sku).await,
        "The shop has no product with the SKU refused-nothing in this channel."
    );
    for id in ["99999", "nothing", "-1", ""] {
        let order = unknown(Variant::Id(id.into()));
        let sentence = format!("The shop has no variant {id} in this channel.");
        assert_eq!(why(&place, &order).await, sentence);
    }
    // A product of another channel.
    let tea = place.server.product("jp", "refused-tea", 1000, None);
    let why_not = why(&place, &unknown(Variant::Id(tea))).await;
    assert!(why_not.contains("in this channel"), "{why_not}");
    assert!(place.server.requests("refused").iter().all(|it| it == "Look"), "no draft is made");

    let few = place.product("few", 1000, Some(3), 5);
    let why_not = why(&place, &with(few.clone())).await;
    let said = "There are not enough of The refused-few (SKU refused-few): 5 were asked for, and 3 can be had.";
    assert_eq!(why_not, said, "without the words that the shop has for programs");
    // The reason is found again when the deletion of the draft went wrong.
    for how in ["cutBefore", "cutAfter"] {
        let order = with(few.clone());
        let mut progress = OrderProgress::default();
        // Three looks with their changes, the fourth look, the addition, and the deletion.
        place.fail(8, &json!(how));
        let why_not = loop {
            match place.go_on(&order, &mut progress).await {
                Err(commerce::RemoteError::Refused(why)) => break why,
                Err(_) => place.heal(),
                Ok(built) => panic!("{built:?}"),
            }
        };
        assert_eq!(why_not, said, "{how}");
        assert_eq!(place.seen(progress.order.as_ref().unwrap()), Value::Null);
    }
    let none = place.product("none", 1000, Some(0), 1);
    let why_not = why(&place, &with(none)).await;
    assert!(why_not.contains("1 were asked for, and 0 can be had"), "{why_not}");
    let many = Line { quantity: 100_000, ..lamp.clone() };
    let why_not = why(&place, &with(many)).await;
    assert!(why_not.contains("maximum of 999 items"), "{why_not}");

    let gone = place.product("gone", 1000, None, 1);
    let Variant::Sku(sku) = &gone.variant else { panic!() };
    let id = place.server.product("eu", "refused-off", 1000, None);
    let disable =
        "mutation($i: [UpdateProductVariantInput!]!) { updateProductVariants(input: $i) { id } }";
    place.server.admin("eu", disable, &json!({"i": [{"id": id, "enabled": false}]}));
    assert_eq!(why(&place, &unknown(Variant::Id(id))).await, "The refused-off is not for sale.");
    place.server.product("eu", sku, 1000, None);
    let why_not = why(&place, &with(gone)).await;
    assert!(why_not.contains("more than one product with the SKU refused-gone"), "{why_not}");

    let mut far = place.order(vec![lamp.clone()]);
    far.shipping_address.as_mut().unwrap().country = "AQ".parse().unwrap();
    let why_not = why(&place, &far).await;
    assert!(why_not.contains("does not know this address") && why_not.contains("AQ"), "{why_not}");

    let gift = place.server.product("eu", "refused-gift", 1000, None);
    place.server.tell(&json!({
        "do": "promotion", "channel": "eu", "variant": gift, "percent": 100, "freeShipping": true,
    }));
    let gift = Line { variant: Variant::Id(gift), quantity: 1 };
    let why_not = why(&place, &place.order(vec![gift])).await;
    assert_eq!(why_not, "The order costs nothing, so there is nothing to pay.");
    assert_eq!(why(&place, &place.order(vec![])).await, "The order has no lines.");

    let nowhere = Place::new("refused-kw", "kw");
    let order = nowhere.order(vec![nowhere.product("sand", 1000, None, 1)]);
    let why_not = why(&nowhere, &order).await;
    assert!(why_not.starts_with("The shop offers no shipping method for this order."), "{why_not}");
}

#[tokio::test]
async fn the_last_piece_is_sold_to_who_pays_first() {
    if !vendure::is_here("the_last_piece_is_sold_to_who_pays_first") {
        return;
    }
    let place = Place::new("race", "eu");
    let last = place.product("last", 1000, Some(1), 1);
    let [first, second, third] = [(); 3].map(|()| place.order(vec![last.clone()]));
    // A draft that is complete, but not locked.
    let mut progress = OrderProgress::default();
    for _ in 0..7 {
        let (next, built) = place.shop.build(&place.channel, &third, &progress).await.unwrap();
        assert_eq!(built, None);
        progress = next;
    }
    // An order that can be paid holds no stock.
    let first_built = place.build(&first).await.unwrap();
    let second_built = place.build(&second).await.unwrap();
    place.settle(&first, &first_built).await.unwrap();
    let why_not = refused(place.go_on(&third, &mut progress).await);
    assert_eq!(why_not, "Something in the order is no longer in stock.");
    assert_eq!(place.seen(progress.order.as_ref().unwrap()), Value::Null);
    let why_not = refused(place.build(&place.order(vec![last])).await);
    assert!(why_not.contains("0 can be had"), "{why_not}");
    // Vendure takes the payment of an order that was locked while there was stock: the shop owes it.
    place.settle(&second, &second_built).await.unwrap();
    assert_eq!(place.seen(&second_built.id)["state"], "PaymentSettled");
}

/// A shop that lost its data gives ids of orders out again.
#[tokio::test]
async fn an_order_of_somebody_else_is_left_alone() {
    if !vendure::is_here("an_order_of_somebody_else_is_left_alone") {
        return;
    }
    let place = Place::new("foreign", "eu");
    let theirs = place.order(vec![place.product("map", 1000, None, 1)]);
    let ours = PurchaseOrder { reference: reference(), ..theirs.clone() };
    let mut progress = OrderProgress::default();
    for _ in 0..3 {
        let (next, _) = place.shop.build(&place.channel, &theirs, &progress).await.unwrap();
        progress = next;
    }
    let id = progress.order.clone().unwrap();
    let untouched = place.seen(&id);
    let nothing = PurchaseOrder { lines: vec![], ..ours.clone() };
    for result in [
        place.go_on(&ours, &mut progress).await.map(drop),
        place.go_on(&nothing, &mut progress).await.map(drop),
        place.cancel(&id, ours.reference).await,
    ] {
        assert!(refused(result).contains("somebody else's"));
    }
    assert_eq!(place.seen(&id), untouched);
    let built = place.go_on(&theirs, &mut progress).await.unwrap();
    for result in [
        place.go_on(&ours, &mut progress).await.map(drop),
        place.settle(&ours, &built).await,
        place.cancel(&id, ours.reference).await,
    ] {
        assert!(refused(result).contains("somebody else's"));
    }
    assert_eq!(place.seen(&id)["state"], "ArrangingPayment");
}
