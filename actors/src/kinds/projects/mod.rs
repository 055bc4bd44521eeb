//! Projects: the parents of apps.

mod handlers;
mod rules;

pub use rules::{Command, Projects};
