//! The handlers of the group Checkout and payments that are about subscriptions.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::subscriptions::{State, SubscriptionIndex, Subscriptions, view},
        people::apps::Apps,
        world::World,
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    Fault, Page, Serves, SubscriptionId, Timestamp,
    checkouts::{self as wire, CheckSubscription, GetSubscriptions, SubscriptionCheck},
};

/// The most subscriptions of one buyer that a check compares.
const MOST_OF_BUYER: usize = 100;

fn checked(state: &State, now: Timestamp) -> SubscriptionCheck {
    let seen = state.seen.as_ref();
    SubscriptionCheck {
        active: state.is_active(now),
        plan_code: seen.map(|seen| seen.plan.clone()),
        status: Some(state.status()),
        current_period_end: seen.and_then(|seen| seen.period_end),
    }
}

/// Whether one subscription is active. `None`: it is gone.
pub fn check_subscription(
    world: &World,
    id: SubscriptionId,
    now: Timestamp,
) -> Result<Option<SubscriptionCheck>, Fault> {
    let found = world.store.get::<Subscriptions>(&id)?;
    Ok(found.map(|found| checked(&found.state, now)))
}

impl Serves<CheckSubscription> for Platform {
    /// An active subscription counts before one that is not, then the one that is paid for longest.
    async fn serve(&self, cx: &Call, p: CheckSubscription) -> Result<SubscriptionCheck, Fault> {
        let store = &self.world.store;
        let mut best: Option<SubscriptionCheck> = None;
        let of_buyer = SubscriptionIndex::of(p.app_id, &p.email);
        for found in store.newest::<Subscriptions>(&of_buyer, None).take(MOST_OF_BUYER) {
            let found = checked(&found?.1.state, cx.now);
            let rank = |check: &SubscriptionCheck| (check.active, check.current_period_end);
            if best.as_ref().is_none_or(|best| rank(best) < rank(&found)) {
                best = Some(found);
            }
        }
        Ok(best.unwrap_or(SubscriptionCheck {
            active: false,
            plan_code: None,
            status: None,
            current_period_end: None,
        }))
    }
}

impl Serves<GetSubscriptions> for Platform {
    async fn serve(
        &self,
        _: &Call,
        p: GetSubscriptions,
    ) -> Result<Page<wire::Subscription>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        match &p.email {
            Some(email) => {
                let entry = SubscriptionIndex::of(p.app_id, email);
                pagination::counted::<Subscriptions, _>(store, &entry, list, false, |id, seen| {
                    Ok(Some(view(id, &seen.state)))
                })
            }
            None => {
                let entry = Under::<Apps>(p.app_id);
                pagination::counted::<Subscriptions, _>(store, &entry, list, false, |id, seen| {
                    Ok(Some(view(id, &seen.state)))
                })
            }
        }
    }
}
