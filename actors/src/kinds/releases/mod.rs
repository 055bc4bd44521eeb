//! Releases: artifacts that go to a channel together.

mod current;
mod effects;
mod handlers;
mod rules;

pub use current::Current;
pub use handlers::{Wanted, draft, publish};
pub use rules::{Command, Draft, Effect, Outcome, Releases, State};
