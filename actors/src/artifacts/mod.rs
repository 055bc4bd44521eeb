//! Artifacts: uploaded binaries, verified before they count.

pub mod address;
mod effects;
pub mod endpoints;
mod hold;
mod machine;
mod serve;

pub use hold::{Hold, HoldDelta};
pub use machine::{Artifacts, Command, Declared, Effect, Expected, FollowUp, Outcome, Upload};
