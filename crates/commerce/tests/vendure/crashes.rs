//! Orders whose service dies, and whose requests go wrong.

use super::place::{Place, shared};
use commerce::{Line, OrderProgress, PurchaseOrder, RemoteError, Shop, Variant};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use test_support::vendure;

/// How many steps and requests the life of an order takes: it is built, and settled.
const STEPS: usize = 9;
const REQUESTS: usize = 21;
const MOST_TRIES: usize = 60;
/// How many lives are lived at the same time.
const AT_ONCE: usize = 4;
const FAULTS: [&str; 3] = ["cutBefore", "cutAfter", "unavailable"];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mischief {
    None,
    /// The service dies after this step, before it has kept what came of it.
    Twice(usize),
    /// A request of each operation goes wrong, after so many others of it.
    Faults(usize, &'static str),
}

/// A whole life in spite of what goes wrong: after each failure, the caller goes on from what it kept.
/// Returns what the shop has of it, and what was asked.
async fn lived(number: usize, line: Line, mischief: Mischief) -> (Value, Vec<Value>) {
    let place = Place::new(&format!("life-{number}"), "ng");
    let order = place.order(vec![line]);
    if let Mischief::Faults(skip, how) = mischief {
        let how = if how == "unavailable" { json!({"status": 503}) } else { json!(how) };
        place.fail_each(skip, &how);
    }
    let mut progress = OrderProgress::default();
    let mut steps = 0;
    let built = loop {
        assert!(steps < MOST_TRIES, "{mischief:?} does not end");
        let step = place.shop.build(&place.channel, &order, &progress).await;
        steps += 1;
        match step {
            // The creation of a draft is the one that cannot be looked up.
            Ok(_) if mischief == Mischief::Twice(steps) => {}
            Ok((_, Some(built))) => break built,
            Ok((next, None)) => progress = next,
            Err(RemoteError::Refused(why)) => panic!("{mischief:?}: {why}"),
            Err(RemoteError::Busy { .. } | RemoteError::Unclear(_)) => {}
        }
    };
    while let Err(e) = place.settle(&order, &built).await {
        assert!(!matches!(e, RemoteError::Refused(_)), "{mischief:?}: {e}");
    }
    let asked = place.server.asked(&place.name);
    if mischief == Mischief::None {
        assert_eq!((steps, asked.len()), (STEPS, REQUESTS));
    }
    (told(&place, &order, &built.id), asked)
}

fn told(place: &Place, order: &PurchaseOrder, id: &str) -> Value {
    let seen = place.seen(id);
    let notes = seen["history"]["items"].as_array().unwrap().len();
    assert_eq!(seen["payments"][0]["transactionId"], json!(order.reference));
    json!({
        "state": seen["state"], "total": seen["totalWithTax"], "notes": notes,
        "quantities": seen["lines"].as_array().unwrap().iter().map(|it| &it["quantity"]).collect::<Vec<_>>(),
        "payments": seen["payments"].as_array().unwrap().len(),
    })
}

/// The orders in a channel: how many there are, and how many are drafts without anything.
fn orders() -> (usize, usize) {
    let query = "{ all: orders { totalItems }
        drafts: orders(options: {filter: {state: {eq: \"Draft\"}}}) {
            totalItems items { lines { id } customer { id } }
        } }";
    let seen = shared().admin("ng", query, &json!({}));
    let drafts = seen["drafts"]["items"].as_array().unwrap();
    assert!(drafts.iter().all(|it| it["lines"] == json!([]) && it["customer"] == Value::Null));
    let all = seen["all"]["totalItems"].as_u64().unwrap();
    (usize::try_from(all).unwrap(), drafts.len())
}

#[tokio::test]
async fn whatever_breaks_the_shop_has_one_order_with_one_payment() {
    if !vendure::is_here("whatever_breaks_the_shop_has_one_order_with_one_payment") {
        return;
    }
    shared().product("ng", "life", 1999, Some(1000));
    let line = || Line { variant: Variant::Sku("life".into()), quantity: 2 };
    let before = orders();
    let (usual, asked) = lived(0, line(), Mischief::None).await;
    let expected = json!({
        "state": "PaymentSettled", "total": 104_298, "notes": 1, "quantities": [2], "payments": 1,
    });
    assert_eq!(usual, expected);
    let operations: BTreeSet<_> = asked.iter().map(|it| it["operation"].to_string()).collect();
    let twice = (2..=STEPS).map(Mischief::Twice);
    let faults = (0..2).flat_map(|skip| FAULTS.map(|how| Mischief::Faults(skip, how)));
    let all: Vec<_> = twice.chain(faults).collect();
    let count = all.len() + 1;
    let one = async |(number, mischief): (usize, Mischief)| {
        let (told, asked) = lived(number + 1, line(), mischief).await;
        assert_eq!(told, usual, "{mischief:?}");
        asked
    };
    let lives = stream::iter(all.into_iter().enumerate()).map(one).buffer_unordered(AT_ONCE);
    let asked = lives.collect::<Vec<_>>().await.concat();
    // Every operation has gone wrong in every way.
    for how in [json!("cutBefore"), json!("cutAfter"), json!({"status": 503})] {
        let faulty = asked.iter().filter(|it| it["how"] == how);
        let faulty: BTreeSet<_> = faulty.map(|it| it["operation"].to_string()).collect();
        assert_eq!(faulty, operations, "{how}");
    }
    let is_lost = |it: &&Value| it["operation"] == "Create" && it["how"] == "cutAfter";
    let lost = asked.iter().filter(is_lost).count();
    let (all, drafts) = orders();
    assert_eq!((all - before.0, drafts - before.1), (count + lost, lost));
}

/// An order that is cancelled at any step, by a caller who repeats what went wrong, is gone or cancelled.
#[tokio::test]
async fn an_order_can_be_cancelled_at_any_step() {
    if !vendure::is_here("an_order_can_be_cancelled_at_any_step") {
        return;
    }
    let line = Place::new("cancelled", "eu").product("hat", 1000, None, 1);
    // Created, marked, filled, complete, locked.
    for steps in [1, 2, 5, STEPS - 2, STEPS - 1] {
        for (skip, how) in [(0, "cutBefore"), (1, "cutBefore"), (1, "cutAfter")] {
            let place = Place::new(&format!("cancelled-{steps}-{skip}-{how}"), "eu");
            let order = place.order(vec![line.clone()]);
            let mut progress = OrderProgress::default();
            for _ in 0..steps {
                let step = place.shop.build(&place.channel, &order, &progress).await.unwrap();
                progress = step.0;
            }
            let id = progress.order.unwrap();
            place.fail(skip, &json!(how));
            let broken = place.cancel(&id, order.reference).await;
            assert!(
                matches!(broken, Err(RemoteError::Busy { .. } | RemoteError::Unclear(_))),
                "{broken:?}"
            );
            for _ in 0..2 {
                place.cancel(&id, order.reference).await.unwrap();
            }
            let seen = place.seen(&id);
            let is_locked = steps == STEPS - 1;
            let expected = if is_locked { json!("Cancelled") } else { Value::Null };
            assert_eq!(seen["state"], expected, "{steps} {how}");
        }
    }
}
