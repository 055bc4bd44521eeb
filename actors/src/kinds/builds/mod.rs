//! Builds of apps. A build runs in the CI of its repository, or on a runner: that asks for a build,
//! reports while it works, and uploads the artifact.

mod ci;
mod effects;
mod foreseen;
mod handlers;
mod log;
mod reports;
mod rules;
mod runners;
mod seen_runners;
mod transitions;
mod waiting;

pub(crate) use ci::build_of_run;
pub use ci::{Asked, Destination, Look, Run, RunOutcome, Workflow};
pub use log::Chunk;
pub use rules::{
    BuildIndex, Builds, Command, Effect, LEASE, Lease, Outcome, Place, Plan, State,
    WAITS_FOR_RUNNER,
};
pub use seen_runners::SeenRunners;
pub use waiting::{Served, Waiting, WaitingBuilds};
