//! Organizations, their members and invitations.

mod effects;
mod machine;
mod reach;
mod serve;

pub use machine::{Command, Invitation, Member, Organization, Organizations};
pub use reach::{Held, Reach, ReachDelta};
