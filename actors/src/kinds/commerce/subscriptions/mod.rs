//! Subscriptions of buyers. Each has an owner, which follows the provider: it is asked after every
//! notice, and when the record is old.

mod effects;
mod rules;
mod view;

pub use effects::{keep, noticed, paid_tier};
pub use rules::{Command, Effect, New, Outcome, State, SubscriptionIndex, Subscriptions};
pub(crate) use view::view;
