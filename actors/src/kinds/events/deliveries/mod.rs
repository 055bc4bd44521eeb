//! Deliveries: each sends one event to one webhook, and tries again when the receiver fails.

mod effects;
mod rules;
mod schedule;

pub use rules::{
    Command, Deliveries, Effect, MOST_WAITING, New, Outcome, State, delivery_id, is_room,
};
pub use schedule::{ATTEMPTS, EARLY};
