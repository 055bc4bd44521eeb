//! Apps: what artifacts and releases belong to.

mod effects;
mod handlers;
mod rules;

pub use rules::{App, Apps, Command, creation};
