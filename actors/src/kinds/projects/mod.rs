//! Projects: the parents of apps.

mod effects;
mod handlers;
mod rules;

pub use rules::{Command, Projects};
