//! Releases: artifacts of one version that are published to a channel together.

mod build_up;
mod commands;
mod current;
mod effects;
mod handlers;
mod policy;
mod rules;
mod transitions;

pub use current::Current;
pub use rules::{Command, Draft, Effect, Offer, Outcome, Releases, State};
