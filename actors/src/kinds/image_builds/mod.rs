//! Builds of registered images: jobs that end with a version that can be run.

mod effects;
pub mod from_source;
mod handlers;
mod progress;
pub mod queue;
mod rules;

pub use rules::{Command, Effect, ImageBuildIndex, ImageBuilds, Outcome, State};
