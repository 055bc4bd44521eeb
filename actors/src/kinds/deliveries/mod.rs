//! Deliveries: each sends one event to one webhook, and tries again when the receiver fails.

mod effects;
mod handlers;
mod rules;
mod schedule;

pub use rules::{Command, Deliveries, Effect, New, Outcome, State, delivery_id};
pub use schedule::{ATTEMPTS, pause};
