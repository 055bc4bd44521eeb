//! Organizations, their members and invitations.

mod effects;
mod handlers;
mod memberships;
mod rules;

pub use memberships::{Held, Reach, ReachDelta};
pub use rules::{Command, Invitation, Member, New, Organization, Organizations};
