//! Projects: what apps and instances hang from.

mod effects;
mod machine;
mod serve;

pub use machine::{Command, Projects};
