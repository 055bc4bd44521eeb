//! Builds of apps. A runner executes a build: it asks for one, reports while it works, and uploads
//! the artifact.

mod effects;
mod handlers;
mod log;
mod rules;
mod runners;
mod transitions;

pub use log::Chunk;
pub use rules::{
    BuildIndex, Builds, Command, Effect, LEASE, Lease, Outcome, Plan, State, WAITS_FOR_RUNNER,
};
