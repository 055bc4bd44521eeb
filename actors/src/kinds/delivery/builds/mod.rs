//! Builds of apps. A build runs in the CI of its repository, or on a runner: that asks for a build,
//! reports while it works, and uploads the artifact.

pub(crate) mod ci;
mod effects;
pub(crate) mod foreseen;
pub(crate) mod log;
pub(crate) mod rules;
mod seen_runners;
mod transitions;
pub(crate) mod waiting;

pub(crate) use ci::build_of_run;
pub use ci::{CiRun, Destination, RunOutcome, RunReport, Workflow};
pub use log::Chunk;
pub use rules::{
    BuildIndex, BuildPlace, BuildPlan, Builds, Command, Effect, LEASE, Lease, Outcome, State,
    WAITS_FOR_RUNNER,
};
pub use seen_runners::SeenRunners;
pub use waiting::{Served, Waiting, WaitingBuilds};
