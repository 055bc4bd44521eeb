//! Releases: artifacts that go to a channel together.

mod current;
mod effects;
mod handlers;
mod rules;

pub use current::Current;
pub use handlers::{Draft, create, publish};
pub use rules::{Command, Effect, Outcome, Releases, State};
