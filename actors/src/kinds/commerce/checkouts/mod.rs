//! Checkouts: payments of buyers. Each has an owner, in which the call that opens it, the calls that
//! verify it, the notices of the provider and the passing of time meet.

mod alarm;
pub(crate) mod effects;
pub(crate) mod price;
mod rules;
mod schedule;
mod transitions;
pub(crate) mod view;

pub use rules::{
    CheckoutClaim, CheckoutIndex, Checkouts, Command, Effect, New, Ordered, Outcome, Price,
    Problem, RequestId, Settlement, SettlementAttempt, ShopOrder, State,
};
pub(crate) use view::view;
