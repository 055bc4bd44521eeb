//! Deployments: how a new revision of a service replaces the live one.

mod build;
mod effects;
pub mod folder;
mod rules;

mod handlers;
mod history;

pub use history::{Created, DeploymentHistory, Earlier};
pub use rules::{Command, DeploymentIndex, Deployments, Effect, Outcome, State};
