//! Random orders of notices, verifications, payments, refunds, failures, restarts and ends of the
//! process. When the world is calm and time has passed, the state of the money is right.

use super::{
    market::{FAULTS, Fault, Market, STEPS, Step, price},
    purchases::{ALL, Of},
    world::{HOUR, Scene, app, checkout, clock, life, reference},
};
use actors::{
    functions::commerce::checkouts::verify_checkout,
    kinds::commerce::{
        checkouts::{Checkouts, Command},
        subscriptions,
    },
};
use contract::{
    checkouts::{CheckoutState as S, PaymentProvider},
    money::{Amount, Money},
};
use proptest::{collection::vec, prelude::*, sample::select};
use std::time::Duration;

#[derive(Debug, Clone)]
enum Event {
    Notice,
    /// The provider posts a notice of the subscription, if it made one.
    SubscriptionNotice,
    Verify,
    Again,
    Settle,
    Pay,
    /// A tampered page.
    PayAnotherSum,
    Decline,
    Refund(u64),
    Fails(Step, Fault),
    Refuses(Step),
    Calm,
    /// The owner crashes.
    Restart,
    /// The process ends, and begins again.
    End,
    Later(Duration),
    /// The owner gets time to work.
    Idle,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = || select(STEPS.to_vec());
    let later = || select(vec![1, 30, 90, 600, 3600, 6 * 3600, 30 * 3600]);
    let event = prop_oneof![
        4 => Just(Event::Notice),
        1 => Just(Event::SubscriptionNotice),
        3 => Just(Event::Verify),
        1 => Just(Event::Again),
        1 => Just(Event::Settle),
        4 => Just(Event::Pay),
        1 => Just(Event::PayAnotherSum),
        1 => Just(Event::Decline),
        2 => select(vec![400, 1000]).prop_map(Event::Refund),
        6 => (step(), select(FAULTS.to_vec())).prop_map(|(step, fault)| Event::Fails(step, fault)),
        2 => step().prop_map(Event::Refuses),
        2 => Just(Event::Calm),
        2 => Just(Event::Restart),
        1 => Just(Event::End),
        3 => later().prop_map(|seconds| Event::Later(Duration::from_secs(seconds))),
        4 => Just(Event::Idle),
    ];
    vec(event, 1..30)
}

async fn happens(scene: &Scene, event: &Event) {
    let market = &scene.market;
    let is_told = scene.checkout(1).is_some_and(|state| state.is_open());
    match event {
        // What is refused, or not answered, is for the callers.
        Event::Notice => drop(scene.ask(1, Command::Look).await),
        Event::SubscriptionNotice => {
            if let Some(id) = market.subscription_of(reference(1)) {
                let of = (app(), scene.checkout(1).unwrap().provider);
                drop(subscriptions::noticed(&scene.platform.world, of, &id).await);
            }
        }
        Event::Again => drop(scene.ask(1, Command::Again).await),
        Event::Settle => drop(scene.ask(1, Command::Settle).await),
        Event::Verify => {
            let (platform, now) = (scene.platform.clone(), scene.now());
            actix_rt::spawn(
                async move { verify_checkout(&platform.world, reference(1), now).await },
            );
        }
        Event::Pay => {
            let _ = is_told && market.pay(reference(1), price());
        }
        Event::PayAnotherSum => {
            let sum = Money { amount: Amount::new(1).unwrap(), ..price() };
            let _ = is_told && market.pay(reference(1), sum);
        }
        Event::Decline => market.decline(reference(1)),
        Event::Refund(minor) => {
            let _ = market.refund(reference(1), *minor);
        }
        Event::Fails(step, fault) => market.inject(*step, *fault),
        Event::Refuses(step) => market.refuse(*step),
        Event::Calm => market.calm(),
        Event::Restart => {
            let _ = scene.platform.world.to::<Checkouts>(checkout(1)).restart().await;
        }
        Event::End => {}
        Event::Later(time) => scene.later(*time).await,
        Event::Idle => {
            drop(
                scene
                    .platform
                    .world
                    .to::<Checkouts>(checkout(1))
                    .wait_idle(Duration::from_millis(50))
                    .await,
            );
        }
    }
}

/// Calm comes, and time passes. The provider posts a notice of what happened late.
async fn ends(scene: &Scene) {
    scene.market.calm();
    for round in 0..16 {
        scene.later(HOUR * 13).await;
        scene.idles(1, "it comes to rest").await;
        if round == 8 {
            scene.ask(1, Command::Look).await.unwrap();
            scene.idles(1, "it comes to rest").await;
        }
    }
}

fn is_right(scene: &Scene, of: Of) {
    let state = scene.checkout(1).unwrap();
    let told = serde_json::to_string(&state).unwrap();
    let (page, orders) = (scene.market.page(reference(1)), scene.market.orders(reference(1)));
    let settlements: usize = orders.iter().map(|order| order.payments.len()).sum();
    let paid = page.as_ref().and_then(|page| page.paid.as_ref()).map(|(sum, _)| sum);
    let has_matched = paid == Some(&price());
    assert!(page.as_ref().is_none_or(|page| page.charges <= 1), "{told}");
    assert!(orders.iter().filter(|order| !order.cancelled).count() <= 1, "{told}");
    // What was given back before it was settled is settled no more, unless an attempt was under way.
    let is_given_back = page.as_ref().is_some_and(|page| page.refunded >= 1000);
    let is_stopped = state.state == S::Failed && has_matched && is_given_back;
    let settled = usize::from(of.is_order() && has_matched);
    assert!(
        settlements == settled || (is_stopped && settlements <= 1),
        "what is paid is settled once, and nothing else: {told}"
    );
    assert_eq!(state.state == S::Settled, has_matched && !is_stopped, "{told}");
    let is_other = paid.is_some() && !has_matched;
    assert_eq!(state.state == S::AmountMismatch, is_other, "{told}");
    assert_eq!(scene.unsettled().contains(&checkout(1)), state.is_unsettled(), "{told}");
    if is_other {
        assert!(state.alarmed, "{told}");
    }
    if let Some(page) = page.filter(|page| page.paid.is_some()) {
        let known = state.payment.as_ref().map_or(0, |payment| payment.refunded);
        assert_eq!(known, page.refunded, "refunds are recorded: {told}");
    }
    // A notice of the provider, or an attempt that did not end, may have kept the subscription of a
    // payment that was given back, or did not match.
    let kept = scene.subscriptions();
    let kept = kept.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let made = usize::from(scene.market.subscription_of(reference(1)).is_some());
    assert!(kept.len() <= made, "{told}");
    match state.subscription {
        Some(id) => assert_eq!(kept, [id], "{told}"),
        None => assert!(!of.is_plan() || is_given_back || state.state != S::Settled, "{told}"),
    }
    assert!(!state.looking && !state.look_owed, "{told}");
}

fn check(provider: PaymentProvider, of: Of, events: &[Event]) {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let market = Market::new(&clock);
    let mut lives: Vec<&[Event]> = events.split(|event| matches!(event, Event::End)).collect();
    lives.push(&[]);
    for (number, events) in lives.iter().enumerate() {
        life(folder.path(), (&clock, &market), async |scene| {
            if number == 0 {
                scene.app(provider).await;
                scene.open(1, provider, of).await.unwrap();
            }
            for event in *events {
                happens(&scene, event).await;
            }
            if number + 1 == lives.len() {
                ends(&scene).await;
                is_right(&scene, of);
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_money_is_right_after_any_order_of_events(
        provider in select(PaymentProvider::ALL.to_vec()),
        of in select(ALL.to_vec()),
        events in events(),
    ) {
        check(provider, of, &events);
    }
}

/// The shop took the payment, and its answer was lost. People hear of it, and give the money back. The
/// shop then keeps its order.
#[test]
fn a_refund_of_what_only_the_shop_knows_to_be_paid_comes_to_rest() {
    let events = [
        Event::Idle,
        Event::Pay,
        Event::Later(HOUR * 30),
        Event::Fails(Step::Settle, Fault::UnclearAfter),
        Event::Notice,
        Event::Idle,
        Event::Refund(1000),
        Event::Notice,
    ];
    check(PaymentProvider::Paystack, Of::Shop, &events);
}

/// The provider makes the subscription, and then nobody learns that this checkout began it, because the
/// payment was given back.
#[test]
fn a_subscription_that_is_noticed_outlives_the_payment_that_began_it() {
    let events = [
        Event::Idle,
        Event::Pay,
        Event::Fails(Step::FindSubscription, Fault::UnclearBefore),
        Event::Notice,
        Event::Idle,
        Event::SubscriptionNotice,
        Event::Refund(1000),
    ];
    for of in [Of::Plan, Of::PlanInShop] {
        check(PaymentProvider::Stripe, of, &events);
    }
}
