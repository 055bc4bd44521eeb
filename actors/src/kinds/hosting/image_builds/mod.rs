//! Image builds: jobs that build, push and add a version of a registered image, or build a version
//! from its recipe.

mod effects;
pub mod from_recipe;
pub mod from_source;
mod masked;
mod progress;
pub mod queue;
pub mod quotas;
mod rules;

pub use rules::{Command, Effect, ImageBuildIndex, ImageBuilds, Outcome, Source, State};
