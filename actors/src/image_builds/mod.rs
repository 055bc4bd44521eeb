//! Builds of registered images: jobs that end with a version that can be run.

mod effects;
mod machine;
mod serve;

pub use machine::{Command, Effect, ImageBuilds, Outcome, State};
