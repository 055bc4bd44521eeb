//! The owners of checkouts over a provider and a shop that fail, and in a process that ends.

use super::{
    market::{FAULTS, Fault, Market, STEPS, Step, price},
    purchases::{ALL, Of},
    world::{HOUR, Scene, a_moment, app, checkout, clock, life, reference, until},
};
use actors::{
    functions::commerce::checkouts::verify_checkout,
    kinds::{
        commerce::checkouts::{Checkouts, Command},
        people::apps::{self, Apps},
    },
};
use contract::{
    Fault as Refusal,
    checkouts::{CheckoutState as S, PaymentProvider, PaymentStatus},
};
use futures_util::future::{join, join_all};
use std::{path::Path, time::Duration};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Runs a test in one life, with an app that takes payments through a provider.
pub fn run<F: Future<Output = ()>>(
    provider: PaymentProvider,
    test: impl FnOnce(Scene, Market) -> F,
) {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let market = Market::new(&clock);
    life(folder.path(), (&clock, &market), async |scene| {
        scene.app(provider).await;
        test(scene, market.clone()).await;
    });
}

/// The buyer pays as soon as there is a page, and the provider posts a notice.
pub async fn is_paid(scene: &Scene, n: u128, told: &str) {
    scene.comes_to(n, S::AwaitingPayment, told).await;
    assert!(scene.market.pay(reference(n), price()), "{told}");
    scene.ask(n, Command::Look).await.unwrap();
}

/// What was paid is settled once.
pub fn is_settled_once(scene: &Scene, n: u128, of: Of, told: &str) {
    let page = scene.market.page(reference(n)).unwrap();
    assert_eq!(page.charges, 1, "{told}");
    let orders = scene.market.orders(reference(n));
    let settlements: usize = orders.iter().map(|order| order.payments.len()).sum();
    assert_eq!(usize::from(of.is_order()), settlements, "{told}");
    let state = scene.checkout(n).unwrap();
    assert_eq!(state.subscription.is_some(), of.is_plan(), "{told}");
    if let Some(id) = state.subscription {
        let of_it = format!("sub-{}", reference(n));
        let records = scene.subscriptions();
        let records = records.iter().filter(|(_, found)| found.provider_id == of_it);
        assert_eq!(records.map(|(id, _)| *id).collect::<Vec<_>>(), [id], "{told}");
    }
    assert!(scene.unsettled().is_empty(), "{told}");
}

/// Which steps a checkout takes.
fn takes(of: Of, step: Step) -> bool {
    match step {
        Step::Open | Step::Look => true,
        Step::Plan | Step::FindSubscription => of.is_plan(),
        Step::Build | Step::Settle => of.is_order(),
        Step::LookAtSubscription | Step::Cancel | Step::Close | Step::Mail => false,
    }
}

#[test]
fn a_checkout_stands_each_failure_of_each_step() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        let steps = ALL.into_iter().flat_map(|of| STEPS.map(|step| (of, step)));
        let cases = steps.filter(|(of, step)| takes(*of, *step));
        let cases = cases.flat_map(|(of, step)| FAULTS.map(|fault| (of, step, fault)));
        for (n, (of, step, fault)) in (1..).zip(cases) {
            let told = format!("{of:?} {step:?} {fault:?}");
            market.inject(step, fault);
            scene.open(n, PaymentProvider::Stripe, of).await.unwrap();
            is_paid(&scene, n, &told).await;
            scene.comes_to(n, S::Settled, &told).await;
            assert!(market.has_failed(), "{told}");
            is_settled_once(&scene, n, of, &told);
        }
    });
}

/// The owners are restarted after each of their writes: a different one each time.
#[test]
fn a_restart_after_any_write_changes_nothing() {
    for of in ALL {
        run(PaymentProvider::Stripe, |scene, _| async move {
            for n in 1.. {
                let told = format!("{of:?}: a restart after {n} writes");
                scene.open(n, PaymentProvider::Stripe, of).await.unwrap();
                let restarts = async {
                    until(&told, || {
                        let is_over = scene.checkout(n).is_some_and(|c| c.state == S::Settled);
                        is_over || u128::from(scene.writes(n)) >= n
                    })
                    .await;
                    let _ = scene.platform.world.to::<Checkouts>(checkout(n)).restart().await;
                };
                let goes_on = async {
                    scene.comes_to(n, S::AwaitingPayment, &told).await;
                    assert!(scene.market.pay(reference(n), price()), "{told}");
                    // The owner may crash with the command in hand; the caller then asks again.
                    while scene.ask(n, Command::Look).await.is_err() {
                        a_moment().await;
                    }
                    scene.comes_to(n, S::Settled, &told).await;
                };
                join(restarts, goes_on).await;
                is_settled_once(&scene, n, of, &told);
                if u128::from(scene.writes(n)) < n {
                    assert!(n > 3, "a checkout takes more writes");
                    return;
                }
            }
        });
    }
}

#[test]
fn an_end_of_the_process_after_any_write_changes_nothing() {
    for of in ALL {
        for writes in 1.. {
            let folder = tempfile::tempdir().unwrap();
            if ends_after(folder.path(), of, writes) {
                assert!(writes > 3, "a checkout takes more writes");
                break;
            }
        }
    }
}

/// True: it was over before.
fn ends_after(folder: &Path, of: Of, writes: u64) -> bool {
    let told = format!("{of:?}: an end after {writes} writes");
    let clock = clock();
    let market = Market::new(&clock);
    let is_over = life(folder, (&clock, &market), async |scene| {
        scene.app(PaymentProvider::Stripe).await;
        scene.open(1, PaymentProvider::Stripe, of).await.unwrap();
        loop {
            let state = scene.checkout(1).unwrap();
            if scene.writes(1) >= writes {
                return false;
            }
            if state.state == S::Settled && scene.is_idle(1) {
                return true;
            }
            if state.is_open() {
                // Nobody posts a notice.
                market.pay(reference(1), price());
                scene.later(Duration::from_secs(1)).await;
            }
            a_moment().await;
        }
    });
    life(folder, (&clock, &market), async |scene| {
        let is_open = || scene.checkout(1).is_some_and(|state| state.is_open());
        until(&told, is_open).await;
        market.pay(reference(1), price());
        scene.comes_to(1, S::Settled, &told).await;
        is_settled_once(&scene, 1, of, &told);
    });
    is_over
}

/// The provider tells the address once, and the answer is lost.
#[test]
fn a_page_whose_address_is_lost_gives_the_request_id_free() {
    run(PaymentProvider::Paystack, |scene, market| async move {
        for (n, fault) in (1..).zip([Fault::UnclearAfter, Fault::PanicsAfter, Fault::HangsAfter]) {
            let (first, second) = (2 * n, 2 * n + 1);
            let (told, request) = (format!("{fault:?}"), n.to_string());
            market.inject(Step::Open, fault);
            scene.open_as(first, PaymentProvider::Paystack, Of::Shop, &request).await.unwrap();
            scene.comes_to(first, S::Failed, &told).await;
            assert!(scene.checkout(first).unwrap().problem.unwrap().lost, "{told}");
            assert!(market.orders(reference(first)).iter().all(|order| order.cancelled), "{told}");
            scene.open_as(second, PaymentProvider::Paystack, Of::Shop, &request).await.unwrap();
            is_paid(&scene, second, &told).await;
            scene.comes_to(second, S::Settled, &told).await;
            is_settled_once(&scene, second, Of::Shop, &told);
        }
    });
}

#[test]
fn a_checkout_that_nobody_answered_begins_again_with_another_order() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        market.refuse(Step::Cancel);
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        scene.comes_to(1, S::AwaitingPayment, "it is well").await;
        market.calm();
        for _ in 0..200 {
            market.inject(Step::Open, Fault::UnclearBefore);
        }
        scene.open(2, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        scene.comes_to(2, S::Failed, "nobody answers").await;
        market.calm();
        assert!(scene.checkout(2).unwrap().can_begin_again());
        scene.ask(2, Command::Again).await.unwrap();
        is_paid(&scene, 2, "again").await;
        scene.comes_to(2, S::Settled, "again").await;
        is_settled_once(&scene, 2, Of::Shop, "again");
        let orders = market.orders(reference(2));
        assert_eq!(orders.iter().map(|order| order.cancelled).collect::<Vec<_>>(), [true, false]);
    });
}

#[test]
fn of_sixteen_callers_with_one_request_id_one_opens_the_checkout() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        let callers = (1..=16).map(|n| scene.open_as(n, PaymentProvider::Stripe, Of::Lines, "one"));
        let answers = join_all(callers).await;
        let opened: Vec<_> = (1..=16).filter(|n| scene.checkout(*n).is_some()).collect();
        assert_eq!(opened.len(), 1, "{answers:?}");
        let others = answers.iter().filter(|answer| **answer == Err(Refusal::Stale));
        assert_eq!(others.count(), 15, "they find it when they are decided again: {answers:?}");
        scene.comes_to(opened[0], S::AwaitingPayment, "one").await;
        assert_eq!(market.asked(Step::Open), 1);
    });
}

#[test]
fn fifty_verifications_at_once_ask_the_provider_once_or_twice() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        scene.comes_to(1, S::AwaitingPayment, "opened").await;
        assert!(market.pay(reference(1), price()));
        let now = scene.now();
        let callers = (0..50).map(|_| verify_checkout(&scene.platform.world, reference(1), now));
        for answer in join_all(callers).await {
            assert_eq!(answer.unwrap().status, PaymentStatus::Paid);
        }
        scene.comes_to(1, S::Settled, "verified").await;
        assert!((1..=2).contains(&market.asked(Step::Look)), "{}", market.asked(Step::Look));
        is_settled_once(&scene, 1, Of::Shop, "verified");
        let looks = market.asked(Step::Look);
        verify_checkout(&scene.platform.world, reference(1), scene.now()).await.unwrap();
        assert_eq!(market.asked(Step::Look), looks, "what is settled is known");
    });
}

/// The provider posts its notice while our own look, which began before the payment, is under way.
#[test]
fn a_notice_during_a_look_is_heard() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        scene.open(1, PaymentProvider::Stripe, Of::Lines).await.unwrap();
        scene.comes_to(1, S::AwaitingPayment, "opened").await;
        // The look has its answer, which arrives late.
        market.inject(Step::Look, Fault::HangsAfter);
        scene.ask(1, Command::Look).await.unwrap();
        until("it is asked", || market.asked(Step::Look) == 1).await;
        assert!(market.pay(reference(1), price()));
        scene.ask(1, Command::Look).await.unwrap();
        assert!(scene.checkout(1).unwrap().look_owed);
        scene.comes_to(1, S::Settled, "the notice").await;
    });
}

/// A key is revoked for a week. Meanwhile somebody pays, and notices cannot be believed.
#[test]
fn a_payment_during_a_week_without_answers_is_found() {
    run(PaymentProvider::Paystack, |scene, market| async move {
        scene.open(1, PaymentProvider::Paystack, Of::Shop).await.unwrap();
        scene.comes_to(1, S::AwaitingPayment, "opened").await;
        market.refuse(Step::Look);
        assert!(market.pay(reference(1), price()));
        for _ in 0..28 {
            scene.later(HOUR * 6).await;
            scene.idles(1, "it is asked").await;
        }
        assert!(market.asked(Step::Look) < 100, "{}", market.asked(Step::Look));
        market.calm();
        scene.later(HOUR * 12).await;
        scene.comes_to(1, S::Settled, "another key").await;
        is_settled_once(&scene, 1, Of::Shop, "another key");
    });
}

#[test]
fn a_refund_of_which_the_first_look_fails_is_recorded() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        is_paid(&scene, 1, "paid").await;
        scene.comes_to(1, S::Settled, "paid").await;
        scene.later(HOUR * 24 * 30).await;
        assert!(market.refund(reference(1), 1000));
        market.inject(Step::Look, Fault::UnclearBefore);
        scene.ask(1, Command::Look).await.unwrap();
        let refunded = || scene.checkout(1).unwrap().payment.unwrap().refunded;
        for _ in 0..3 {
            scene.later(Duration::from_secs(60)).await;
            scene.idles(1, "it is asked").await;
        }
        assert_eq!(refunded(), 1000);
        assert_eq!(scene.checkout(1).unwrap().state, S::Settled);
        is_settled_once(&scene, 1, Of::Shop, "refunded");
    });
}

#[test]
fn an_order_that_nobody_pays_is_cancelled_and_leaves_its_channel() {
    for provider in PaymentProvider::ALL {
        run(provider, |scene, market| async move {
            scene.open(1, provider, Of::Shop).await.unwrap();
            scene.comes_to(1, S::AwaitingPayment, "opened").await;
            assert_eq!(scene.open_in_channel(), 1);
            market.inject(Step::Cancel, Fault::UnclearBefore);
            for _ in 0..24 {
                scene.later(HOUR * 4).await;
                scene.idles(1, "it is asked").await;
            }
            assert_eq!(scene.open_in_channel(), 0, "{provider:?}");
            // Where a page cannot be closed, somebody may still pay.
            let is_stripe = provider == PaymentProvider::Stripe;
            assert_eq!(market.orders(reference(1))[0].cancelled, is_stripe);
            assert_eq!(market.pay(reference(1), price()), !is_stripe);
            if !is_stripe {
                scene.ask(1, Command::Look).await.unwrap();
                scene.comes_to(1, S::Settled, "a late payment").await;
                is_settled_once(&scene, 1, Of::Shop, "a late payment");
            }
        });
    }
}

#[test]
fn a_checkout_goes_in_its_time_and_a_page_that_may_be_paid_later() {
    run(PaymentProvider::Stripe, |scene, _| async move {
        let [paid, unpaid] = [1, 2];
        for n in [paid, unpaid] {
            scene.open(n, PaymentProvider::Stripe, Of::Lines).await.unwrap();
            scene.comes_to(n, S::AwaitingPayment, "opened").await;
        }
        is_paid(&scene, paid, "at first").await;
        scene.comes_to(paid, S::Settled, "at first").await;
        scene.later(HOUR * 25).await;
        scene.comes_to(unpaid, S::Expired, "at first").await;
        scene.later(DAY * 99).await;
        assert!(scene.checkout(unpaid).is_some());
        scene.later(DAY).await;
        assert!(scene.checkout(unpaid).is_none());
        scene.later(DAY * 620).await;
        assert!(scene.checkout(paid).is_some());
        scene.later(DAY * 11).await;
        assert!(scene.checkout(paid).is_none());
    });
    run(PaymentProvider::Paystack, |scene, _| async move {
        scene.open(1, PaymentProvider::Paystack, Of::Lines).await.unwrap();
        scene.comes_to(1, S::AwaitingPayment, "opened").await;
        for _ in 0..24 {
            scene.later(HOUR * 4).await;
            scene.idles(1, "it is asked").await;
        }
        scene.later(DAY * 190).await;
        assert!(scene.checkout(1).is_some_and(|found| found.is_open()));
        scene.later(DAY * 10).await;
        assert!(scene.checkout(1).is_none());
    });
}

#[test]
fn the_end_of_an_app_closes_its_pages() {
    for (fault, times) in
        [(Fault::UnclearBefore, 0), (Fault::UnclearBefore, 60), (Fault::UnclearAfter, 1)]
    {
        run(PaymentProvider::Stripe, |scene, market| async move {
            for (n, of) in (1..).zip(ALL) {
                scene.open(n, PaymentProvider::Stripe, of).await.unwrap();
                scene.comes_to(n, S::AwaitingPayment, "opened").await;
            }
            (0..times).for_each(|_| market.inject(Step::Close, fault));
            let delete = apps::Command::Delete;
            scene.platform.world.to::<Apps>(app()).ask(delete).await.unwrap();
            let store = &scene.world().store;
            until("the app goes", || store.get::<apps::Apps>(&app()).unwrap().is_none()).await;
            for n in [1, 2, 3] {
                assert!(scene.checkout(n).is_none());
                assert!(market.page(reference(n)).unwrap().closed, "nobody pays for what is gone");
            }
            assert!(market.has_failed());
        });
    }
}
