//! Deployments: how a new version of a service takes the place of the one that serves.

mod build;
mod effects;
mod machine;
pub mod prune;
mod serve;
mod served;

pub use machine::{Command, Deployments, Effect, Outcome, State};
pub use served::Served;
