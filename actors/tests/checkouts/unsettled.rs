//! Money that arrived and cannot be settled, or is not what was to be paid.

use super::{
    market::{Fault, Market, Step, price},
    owners::{is_paid, is_settled_once, run},
    purchases::{ALL, Of},
    world::{HOUR, a_moment, app, checkout, clock, life, reference, until},
};
use actors::{
    functions::commerce::checkouts::unsettled::{Whole, refuse_unsettled},
    kinds::{
        commerce::checkouts::Command,
        people::apps::{self, Apps},
    },
};
use contract::{
    Fault as Refusal, Id,
    checkouts::{CheckoutState as S, PaymentProvider},
    money::{Amount, Money},
};
use ulid::Ulid;

#[test]
fn paid_and_not_settled_is_tried_until_it_succeeds_and_told_once() {
    for (of, step) in [
        (Of::Shop, Step::Settle),
        (Of::Plan, Step::FindSubscription),
        (Of::PlanInShop, Step::Settle),
        (Of::PlanInShop, Step::FindSubscription),
    ] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
        let market = Market::new(&clock);
        life(folder.path(), (&clock, &market), async |scene| {
            scene.app(PaymentProvider::Stripe).await;
            market.refuse(step);
            scene.open(1, PaymentProvider::Stripe, of).await.unwrap();
            is_paid(&scene, 1, "refused").await;
            // The provider repeats its notice while people are told.
            for _ in 0..5 {
                scene.ask(1, Command::Look).await.unwrap();
            }
            scene.comes_to(1, S::Settling, "refused").await;
        });
        life(folder.path(), (&clock, &market), async |scene| {
            for _ in 0..60 {
                scene.later(HOUR).await;
                scene.ask(1, Command::Look).await.unwrap();
                scene.idles(1, "it is tried again").await;
            }
            assert_eq!(scene.checkout(1).unwrap().state, S::Settling);
            assert_eq!(scene.unsettled(), [checkout(1)]);
            assert_eq!(scene.alarms(), 1, "{:?}", market.mails());
            assert!(market.asked(step) > 60, "it is tried every hour");
            assert!(market.refund(reference(1), 300));
            scene.ask(1, Command::Look).await.unwrap();
            market.calm();
            scene.later(HOUR).await;
            scene.comes_to(1, S::Settled, "the shop is back").await;
            is_settled_once(&scene, 1, of, "the shop is back");
            let payment = scene.checkout(1).unwrap().payment.unwrap();
            assert_eq!(payment.refunded, 300);
        });
    }
}

#[test]
fn a_wrong_sum_is_told_once_and_never_settled() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        let sums = [(1, "EUR"), (1000, "NGN"), (1001, "EUR")];
        for (n, (sum, currency)) in (1..).zip(sums) {
            let told = format!("{sum} {currency}");
            scene.open(n, PaymentProvider::Stripe, Of::Shop).await.unwrap();
            scene.comes_to(n, S::AwaitingPayment, &told).await;
            let amount = Amount::new(sum).unwrap();
            let sum = Money { amount, currency: currency.parse().unwrap() };
            assert!(market.pay(reference(n), sum));
            // The thank-you page and the notice come at once, and once more.
            for _ in 0..5 {
                scene.ask(n, Command::Look).await.unwrap();
                a_moment().await;
            }
            scene.comes_to(n, S::AmountMismatch, &told).await;
            assert_eq!(scene.alarms(), usize::try_from(n).unwrap(), "{told}");
            assert!(scene.unsettled().contains(&checkout(n)), "{told}");
            let settled = scene.ask(n, Command::Settle).await;
            assert!(matches!(settled, Err(Refusal::NotNow(_))), "{told}: {settled:?}");
            assert!(market.refund(reference(n), amount.minor()));
            scene.ask(n, Command::Look).await.unwrap();
            until(&told, || scene.unsettled().is_empty()).await;
        }
        assert_eq!(market.asked(Step::Settle), 0);
        assert_eq!(scene.open_in_channel(), 0, "the channel may go");
    });
}

#[test]
fn a_mail_server_that_hangs_stops_no_settlement() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        market.refuse(Step::Settle);
        market.inject(Step::Mail, Fault::HangsBefore);
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        is_paid(&scene, 1, "the mail hangs").await;
        until("the mail is being sent", || market.asked(Step::Mail) > 0).await;
        market.calm();
        scene.comes_to(1, S::Settled, "the shop is back").await;
        is_settled_once(&scene, 1, Of::Shop, "the shop is back");
    });
}

#[test]
fn what_a_person_settled_is_tried_no_more() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        market.refuse(Step::Settle);
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        let by_hand = || Command::SettledByHand("sent by post".parse().unwrap());
        assert!(matches!(scene.ask(1, by_hand()).await, Err(Refusal::NotNow(_))), "nobody paid");
        is_paid(&scene, 1, "refused").await;
        scene.comes_to(1, S::Settling, "refused").await;
        scene.idles(1, "people are told").await;
        // A payment of another sum, which the shop would never take.
        scene.open(2, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        scene.comes_to(2, S::AwaitingPayment, "opened").await;
        assert!(market.pay(reference(2), Money { amount: Amount::new(1).unwrap(), ..price() }));
        scene.ask(2, Command::Look).await.unwrap();
        scene.comes_to(2, S::AmountMismatch, "another sum").await;
        for whole in [
            Whole::App(app()),
            Whole::Project(Id::of(Ulid(2))),
            Whole::Organization(Id::of(Ulid(1))),
        ] {
            let refused =
                refuse_unsettled(&scene.platform.world, whole).await.unwrap_err().to_string();
            assert!(refused.contains("and 1 more are not settled"), "{refused}");
        }
        market.calm();
        for n in [1, 2] {
            scene.ask(n, by_hand()).await.unwrap();
            assert!(scene.ask(n, by_hand()).await.is_err(), "it is settled");
        }
        refuse_unsettled(&scene.platform.world, Whole::App(app())).await.unwrap();
        let tried = market.asked(Step::Settle);
        scene.later(HOUR * 3).await;
        for n in [1, 2] {
            scene.idles(n, "nothing is left").await;
            assert_eq!(scene.checkout(n).unwrap().state, S::Settled);
        }
        assert_eq!(market.asked(Step::Settle), tried);
    });
}

#[test]
fn the_end_of_an_app_tells_people_of_money_that_is_not_settled() {
    run(PaymentProvider::Stripe, |scene, market| async move {
        market.refuse(Step::Settle);
        market.inject(Step::Mail, Fault::UnclearBefore);
        scene.open(1, PaymentProvider::Stripe, Of::Shop).await.unwrap();
        is_paid(&scene, 1, "refused").await;
        scene.comes_to(1, S::Settling, "refused").await;
        scene.idles(1, "nobody hears").await;
        assert_eq!(scene.alarms(), 0);
        scene.platform.world.to::<Apps>(app()).ask(apps::Command::Delete).await.unwrap();
        let store = &scene.world().store;
        until("the app goes", || store.get::<apps::Apps>(&app()).unwrap().is_none()).await;
        assert_eq!(scene.alarms(), 1);
    });
}

#[test]
fn what_is_given_back_before_it_is_settled_is_not_settled() {
    for of in ALL {
        run(PaymentProvider::Stripe, |scene, market| async move {
            market.refuse(Step::Settle);
            market.refuse(Step::FindSubscription);
            scene.open(1, PaymentProvider::Stripe, of).await.unwrap();
            scene.comes_to(1, S::AwaitingPayment, "opened").await;
            assert!(market.pay(reference(1), price()));
            if of == Of::Lines {
                // Given back before anybody looked.
                assert!(market.refund(reference(1), 1000));
            } else {
                scene.ask(1, Command::Look).await.unwrap();
                scene.comes_to(1, S::Settling, "refused").await;
                scene.idles(1, "people are told").await;
                assert!(market.refund(reference(1), 1000));
            }
            market.inject(Step::Cancel, Fault::UnclearBefore);
            scene.ask(1, Command::Look).await.unwrap();
            scene.comes_to(1, S::Failed, "given back").await;
            scene.ask(1, Command::Look).await.unwrap();
            market.calm();
            for _ in 0..30 {
                scene.later(HOUR * 4).await;
                scene.idles(1, "it is asked").await;
            }
            assert_eq!(scene.checkout(1).unwrap().state, S::Failed);
            assert!(scene.unsettled().is_empty());
            assert_eq!(scene.open_in_channel(), 0, "the channel may go");
            for order in market.orders(reference(1)) {
                assert!(order.cancelled && order.payments.is_empty());
            }
        });
    }
}
