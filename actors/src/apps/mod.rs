//! Apps: what artifacts and releases belong to.

mod effects;
mod machine;
mod serve;

pub use machine::{App, Apps, Command, creation};
