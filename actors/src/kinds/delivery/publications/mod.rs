//! Publications in stores. Each has an owner, which takes it to its goal step by step and tells its
//! release where it stands.

mod effects;
mod options;
mod rules;
mod transitions;

pub(crate) use effects::Follow;
pub use effects::check_key;
pub use options::{firebase_app, options_of};
pub use rules::{Command, Effect, New, Ordered, Outcome, Publications, State, StepResult};
