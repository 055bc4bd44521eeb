//! Organizations, their members and invitations.

mod effects;
mod memberships;
pub(crate) mod rules;

pub use memberships::{Membership, Memberships, MembershipsDelta};
pub use rules::{Command, Invitation, Member, New, Organization, Organizations};
