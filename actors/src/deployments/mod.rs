//! Deployments: how a new version of a service takes the place of the one that serves.

mod build;
mod effects;
mod lane;
mod log;
mod machine;
pub mod prune;
mod serve;

pub use lane::{Lane, LaneDelta};
pub use log::Line;
pub use machine::{Command, Deployments, Effect, Outcome, State};
