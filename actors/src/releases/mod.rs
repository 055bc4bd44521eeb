//! Releases: artifacts that go to a channel together.

mod current;
mod effects;
mod machine;
mod serve;

pub use current::Current;
pub use machine::{Command, Effect, Outcome, Releases, State};
pub use serve::{Draft, create, publish};
