//! Deployments: how a new revision of a service replaces the live one.

pub(crate) mod build;
mod effects;
mod rules;
mod transitions;

pub use rules::{Command, DeploymentIndex, Deployments, Effect, Outcome, State};
