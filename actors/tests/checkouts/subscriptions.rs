//! The owners of subscriptions.

use super::{
    market::{Fault, Market, Step},
    world::{BUYER, HOUR, Scene, app, clock, life, until},
};
use actors::kinds::commerce::subscriptions::{self, Command, State, Subscriptions};
use contract::{Id, SubscriptionId, UserId, authentication::Tier, checkouts::PaymentProvider};
use futures_util::future::{join, join_all};
use payments::{Subscription, SubscriptionStatus as S};
use std::time::Duration;
use ulid::Ulid;

const DAY: Duration = Duration::from_secs(24 * 3600);
const STRIPE: PaymentProvider = PaymentProvider::Stripe;

fn user() -> UserId {
    Id::of(Ulid(77))
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(Scene, Market) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let market = Market::new(&clock);
    life(folder.path(), (&clock, &market), async |scene| {
        scene.app(STRIPE).await;
        test(scene, market.clone()).await;
    });
}

impl Scene {
    /// A subscription that is paid for thirty days from now.
    fn subscription(&self, id: &str, plan: &str, email: &str) -> Subscription {
        Subscription {
            id: id.into(),
            plan: plan.parse().unwrap(),
            email: email.parse().unwrap(),
            status: S::Active,
            period_end: Some(self.now() + DAY * 30),
            said: "active".into(),
            renewal_failure: None,
        }
    }

    /// The provider posts a notice.
    async fn noticed(&self, id: &str) {
        subscriptions::noticed(self.world(), (app(), STRIPE), id).await.unwrap();
    }

    fn record(&self, id: &str) -> Option<(SubscriptionId, State)> {
        self.subscriptions().into_iter().find(|(_, state)| state.provider_id == id)
    }

    fn is_active(&self, id: &str) -> bool {
        self.record(id).is_some_and(|(_, state)| state.is_active(self.now()))
    }

    async fn has_tier(&self, tier: Tier, told: &str) {
        until(told, || self.tier(user()) == tier).await;
    }

    /// Nothing is under way in any subscription.
    async fn subscriptions_idle(&self) {
        until("subscriptions come to rest", || {
            let ids = self.subscriptions().into_iter().map(|(id, _)| id);
            let mut found =
                ids.filter_map(|id| self.world().store.get::<Subscriptions>(&id).unwrap());
            found.all(|found| found.pending().is_none())
        })
        .await;
    }
}

#[test]
fn a_subscription_that_is_noticed_by_many_at_once_has_one_record() {
    run(|scene, market| async move {
        market.subscribe(scene.subscription("sub_1", "PLN_gold", BUYER));
        let seen = || scene.subscription("sub_1", "PLN_gold", BUYER);
        let notices = (0..8).map(|_| scene.noticed("sub_1"));
        let kept = (0..8).map(|_| subscriptions::keep(scene.world(), (app(), STRIPE), seen()));
        let (_, kept) = join(join_all(notices), join_all(kept)).await;
        scene.subscriptions_idle().await;
        let records = scene.subscriptions();
        assert_eq!(records.len(), 1);
        assert!(kept.into_iter().flatten().all(|id| id == records[0].0));
        assert!(scene.is_active("sub_1"));
    });
}

/// The look that is under way may have its answer from before the notice.
#[test]
fn a_notice_during_a_look_is_heard() {
    run(|scene, market| async move {
        market.subscribe(scene.subscription("sub_1", "PLN_gold", BUYER));
        scene.noticed("sub_1").await;
        scene.subscriptions_idle().await;
        let asked = market.asked(Step::LookAtSubscription);
        let old = scene.subscription("sub_1", "PLN_gold", BUYER);
        market.inject(Step::LookAtSubscription, Fault::HangsAfter);
        scene.noticed("sub_1").await;
        until("it is asked", || market.asked(Step::LookAtSubscription) > asked).await;
        market.subscribe(Subscription { status: S::Ended, ..old.clone() });
        scene.noticed("sub_1").await;
        // What a checkout found before does not hide it.
        subscriptions::keep(scene.world(), (app(), STRIPE), old).await.unwrap();
        until("it ends", || !scene.is_active("sub_1")).await;
        scene.subscriptions_idle().await;
        assert!(!scene.is_active("sub_1"));
    });
}

#[test]
fn the_tier_of_an_account_follows_what_it_pays() {
    run(|scene, market| async move {
        scene.register(user(), BUYER).await;
        market.subscribe(scene.subscription("sub_1", "PLN_silver", BUYER));
        market.subscribe(scene.subscription("sub_2", "PLN_gold", BUYER));
        market.subscribe(scene.subscription("sub_3", "PLN_unknown", BUYER));
        join_all([scene.noticed("sub_1"), scene.noticed("sub_2"), scene.noticed("sub_3")]).await;
        scene.has_tier(Tier::Professional, "the highest one").await;
        let gold = scene.subscription("sub_2", "PLN_gold", BUYER);
        market.subscribe(Subscription { status: S::Ended, ..gold.clone() });
        scene.noticed("sub_2").await;
        scene.has_tier(Tier::Developer, "the other one").await;
        // Another person takes the subscription over.
        let other = "new@example.com";
        let silver = scene.subscription("sub_1", "PLN_silver", other);
        market.subscribe(silver);
        scene.noticed("sub_1").await;
        scene.has_tier(Tier::Free, "nothing is paid for it any more").await;
        let another: UserId = Id::of(Ulid(78));
        scene.register(another, other).await;
        assert_eq!(scene.tier(another), Tier::Developer, "it was paid before");
    });
}

/// Two subscriptions of one address change at the same moment.
#[test]
fn the_last_word_about_a_tier_is_the_right_one() {
    run(|scene, market| async move {
        scene.register(user(), BUYER).await;
        let gold = scene.subscription("sub_1", "PLN_gold", BUYER);
        let silver = scene.subscription("sub_2", "PLN_silver", BUYER);
        for round in 0..60 {
            let status = |is_active| if is_active { S::Active } else { S::Ended };
            market.subscribe(Subscription { status: status(round % 2 == 0), ..gold.clone() });
            market.subscribe(Subscription { status: status(round % 2 == 1), ..silver.clone() });
            join_all([scene.noticed("sub_1"), scene.noticed("sub_2")]).await;
            scene.subscriptions_idle().await;
            let tier = if round % 2 == 0 { Tier::Professional } else { Tier::Developer };
            assert_eq!(scene.tier(user()), tier, "round {round}");
        }
    });
}

#[test]
fn a_subscription_is_renewed_lapses_and_has_its_grace() {
    run(|scene, market| async move {
        scene.register(user(), BUYER).await;
        let first = scene.subscription("sub_1", "PLN_gold", BUYER);
        market.subscribe(first.clone());
        scene.noticed("sub_1").await;
        scene.has_tier(Tier::Professional, "paid").await;
        scene.subscriptions_idle().await;
        // It is renewed, and no notice comes.
        let end = first.period_end.unwrap();
        market.subscribe(Subscription { period_end: Some(end + DAY * 30), ..first.clone() });
        scene.later(DAY * 30 + HOUR).await;
        scene.subscriptions_idle().await;
        let period_end = scene.record("sub_1").unwrap().1.seen.unwrap().period_end;
        assert_eq!(period_end, Some(end + DAY * 30));
        // A renewal fails: the buyer goes on until the provider gives up.
        let why = Some("card declined".into());
        let late = Subscription { status: S::PastDue, renewal_failure: why, ..first.clone() };
        market.subscribe(Subscription { period_end: Some(end + DAY * 30), ..late });
        scene.later(DAY * 30 + HOUR).await;
        scene.subscriptions_idle().await;
        assert!(scene.is_active("sub_1") && scene.tier(user()) == Tier::Professional);
        // The provider cannot be reached, and the grace ends.
        market.refuse(Step::LookAtSubscription);
        for _ in 0..40 {
            scene.later(HOUR * 2).await;
            scene.subscriptions_idle().await;
        }
        assert!(!scene.is_active("sub_1"));
        scene.has_tier(Tier::Free, "the grace is over").await;
        // It answers, and the renewal was paid after all.
        market.calm();
        let paid = Subscription { period_end: Some(scene.now() + DAY * 30), ..first.clone() };
        market.subscribe(paid.clone());
        scene.later(HOUR * 2).await;
        scene.has_tier(Tier::Professional, "paid after all").await;
        // The buyer cancels: what is paid is kept until its end.
        market.subscribe(Subscription { status: S::Ending, ..paid.clone() });
        scene.noticed("sub_1").await;
        scene.subscriptions_idle().await;
        assert!(scene.is_active("sub_1"));
        market.subscribe(Subscription { status: S::Ended, ..paid });
        scene.later(DAY * 30 + HOUR).await;
        scene.has_tier(Tier::Free, "it is over").await;
        assert_eq!(scene.record("sub_1").unwrap().1.due, None, "nothing is left to ask");
    });
}

#[test]
fn a_subscription_stands_each_failure_of_its_provider() {
    run(|scene, market| async move {
        for (n, fault) in super::market::FAULTS.into_iter().enumerate() {
            let (id, told) = (format!("sub_{n}"), format!("{fault:?}"));
            market.subscribe(scene.subscription(&id, "PLN_gold", BUYER));
            market.inject(Step::LookAtSubscription, fault);
            scene.noticed(&id).await;
            for _ in 0..100 {
                if scene.is_active(&id) {
                    break;
                }
                scene.later(Duration::from_secs(10)).await;
                super::world::a_moment().await;
            }
            until(&told, || scene.is_active(&id)).await;
            scene
                .platform
                .world
                .to::<Subscriptions>(scene.record(&id).unwrap().0)
                .ask(Command::Look)
                .await
                .unwrap();
            scene.subscriptions_idle().await;
        }
    });
}
