//! A subscription as callers see it.

use super::State;
use contract::{SubscriptionId, checkouts as wire};

pub(crate) fn view(id: SubscriptionId, state: &State) -> wire::Subscription {
    let seen = state.seen.as_ref();
    wire::Subscription {
        id,
        app_id: state.app_id,
        provider: state.provider,
        provider_id: state.provider_id.clone(),
        email: seen.map(|seen| seen.email.clone()),
        plan_code: seen.map(|seen| seen.plan.clone()),
        status: state.status(),
        provider_status: seen.map(|seen| seen.said.clone()),
        current_period_end: seen.and_then(|seen| seen.period_end),
        renewal_failure: seen.and_then(|seen| seen.renewal_failure.clone()),
        checked_at: state.checked_at,
        problem: state.problem.clone(),
        created_at: state.created_at,
    }
}
