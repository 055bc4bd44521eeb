//! Deployments: how a new version of a service takes the place of the one that serves.

mod build;
mod effects;
mod rules;

mod handlers;
mod history;

pub use history::{Created, DeploymentHistory, Earlier};
pub use rules::{Command, DeploymentIndex, Deployments, Effect, Outcome, State};
