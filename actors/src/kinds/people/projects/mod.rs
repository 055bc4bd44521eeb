//! Projects: the parents of apps.

mod rules;

pub use rules::{Command, Projects};
