//! Checkouts: payments of buyers. Each has an owner, in which the call that opens it, the calls that
//! verify it, the notices of the provider and the passing of time meet.

mod alarm;
mod create;
mod effects;
mod handlers;
mod notices;
mod price;
mod rules;
mod schedule;
mod transitions;
mod unsettled;
mod view;

pub use effects::provider_key;
pub use rules::{
    Attempt, CheckoutClaim, CheckoutIndex, Checkouts, Command, Effect, New, Ordered, Outcome,
    Price, Problem, RequestId, Settlement, ShopOrder, State,
};
pub use unsettled::Whole;
pub(crate) use view::view;
