//! Subscriptions of buyers. Each has an owner, which follows the provider: it is asked after every
//! notice, and when the record is old.

mod effects;
mod handlers;
mod rules;

pub use effects::{keep, noticed, paid_tier};
pub use handlers::check;
pub use rules::{Command, Effect, New, Outcome, State, SubscriptionIndex, Subscriptions};
