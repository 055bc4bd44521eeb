//! Projects: what apps and instances hang from.

mod effects;
mod handlers;
mod rules;

pub use rules::{Command, Projects};
