//! Releases: artifacts of one version that are published to a channel together.

mod build_up;
mod commands;
mod current;
mod effects;
mod handlers;
mod policy;
mod rollback;
mod rules;
mod settle;
mod transitions;

pub use current::Current;
pub use effects::report;
pub use rules::{Answer, Command, Draft, Effect, Offer, Outcome, Releases, State, Wish};
